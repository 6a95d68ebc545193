// Package kstatus says in three conditions what tools ask of every object: Ready,
// Reconciling and Stalled, as kstatus reads them (sigs.k8s.io/cli-utils, pkg/kstatus).
// Flux, Helm and `kubectl wait --for=condition=Ready` know no other conditions, and take
// an object without them for one that is well.
package kstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// The types of the conditions, here and of the kinds: those that each kind has.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"

	available   = "Available"
	progressing = "Progressing"
	degraded    = "Degraded"
)

// Reasons of Reconciling and Stalled while they are False.
const (
	ReasonSettled   = "Settled"
	ReasonStalled   = "Stalled"
	ReasonNoBlocker = "NotStalled"

	reasonUnknown = "Unknown"
)

// Effect is what something that is wrong means for who waits for the object.
type Effect int

const (
	// Passes is the effect of what goes by itself, or when an object comes that others
	// make. Until then the object is not ready. A reason that has no effect has this one.
	Passes Effect = iota
	// NeedsPerson is the effect of what stays until a person does something.
	NeedsPerson
	// Beside is the effect of what a person should know, while the object is as its spec
	// says all the same.
	Beside
)

// String is the effect as users are told of it.
func (e Effect) String() string {
	switch e {
	case NeedsPerson:
		return "needs a person"
	case Beside:
		return "beside"
	}
	return "passes"
}

// Effects are those of the reasons of condition Degraded.
type Effects map[string]Effect

// NeedsPerson reports whether a reason always stays until a person does something.
func (e Effects) NeedsPerson(reason string) bool { return e[reason] == NeedsPerson }

// Verdict is what a kind says of an object, beside its conditions Available and
// Progressing.
type Verdict struct {
	// Idle is true where nothing serves on purpose: that is ready, as a Deployment with 0
	// replicas is.
	Idle bool
	// Blocker is what stays until a person does something, and Obstacle what keeps the
	// object from being ready and passes. Both are empty where there is none.
	Blocker, Obstacle engine.Notice
}

// Of is the verdict on condition Degraded.
func (e Effects) Of(conditions []metav1.Condition) Verdict {
	c := meta.FindStatusCondition(conditions, degraded)
	if c == nil || c.Status != metav1.ConditionTrue {
		return Verdict{}
	}
	switch e[c.Reason] {
	case Beside:
		return Verdict{}
	case NeedsPerson:
		return Verdict{Blocker: Notice(c)}
	}
	return Verdict{Obstacle: Notice(c)}
}

// With adds Ready, Reconciling and Stalled to the conditions of a kind of which Degraded says
// all that is wrong.
func (e Effects) With(conditions []metav1.Condition) []metav1.Condition {
	return With(conditions, e.Of(conditions))
}

// Notice is the reason of a condition, and its message.
func Notice(c *metav1.Condition) engine.Notice {
	return engine.Notice{Reason: c.Reason, Message: c.Message}
}

// With adds Ready, Reconciling and Stalled to the conditions of a kind. Exactly one of the
// three is True: it is as its spec says, or comes to be, or needs a person.
func With(conditions []metav1.Condition, v Verdict) []metav1.Condition {
	s := seen{Verdict: v, available: find(conditions, available), progressing: find(conditions, progressing)}
	return slices.Concat(conditions, []metav1.Condition{s.ready(), s.reconciling(), s.stalled()})
}

func find(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reasonUnknown}
}

// seen is what the three conditions follow from.
type seen struct {
	Verdict
	available, progressing metav1.Condition
}

// missing is why the object is not ready; empty if it is.
func (s seen) missing() engine.Notice {
	serves := s.Idle || s.available.Status == metav1.ConditionTrue
	switch {
	case s.Blocker.Reason != "":
		return s.Blocker
	case s.progressing.Status == metav1.ConditionTrue:
		return Notice(&s.progressing)
	case s.Obstacle.Reason != "":
		return s.Obstacle
	case !serves:
		return Notice(&s.available)
	}
	return engine.Notice{}
}

func (s seen) ready() metav1.Condition {
	if why := s.missing(); why.Reason != "" {
		return condition(Ready, metav1.ConditionFalse, why)
	}
	return condition(Ready, metav1.ConditionTrue, Notice(&s.available))
}

func (s seen) reconciling() metav1.Condition {
	why := s.missing()
	switch {
	case s.Blocker.Reason != "":
		return condition(Reconciling, metav1.ConditionFalse, engine.Notice{Reason: ReasonStalled, Message: "see condition Stalled"})
	case why.Reason != "":
		return condition(Reconciling, metav1.ConditionTrue, why)
	}
	return condition(Reconciling, metav1.ConditionFalse, engine.Notice{Reason: ReasonSettled, Message: "nothing is left to do"})
}

func (s seen) stalled() metav1.Condition {
	if s.Blocker.Reason != "" {
		return condition(Stalled, metav1.ConditionTrue, s.Blocker)
	}
	return condition(Stalled, metav1.ConditionFalse, engine.Notice{Reason: ReasonNoBlocker, Message: "nothing waits for a person"})
}

func condition(kind string, status metav1.ConditionStatus, why engine.Notice) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: why.Reason, Message: why.Message}
}
