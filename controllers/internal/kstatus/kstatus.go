// Package kstatus computes the three conditions that generic tools read: Ready, Reconciling and
// Stalled, as defined by kstatus (sigs.k8s.io/cli-utils, pkg/kstatus). Flux, Helm and `kubectl wait
// --for=condition=Ready` read only these conditions. They treat an object without them as ready.
package kstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// The types of the conditions: those of kstatus, and those that each kind has.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"

	available   = "Available"
	progressing = "Progressing"
	degraded    = "Degraded"
)

// Reasons of Reconciling and Stalled with status False.
const (
	ReasonSettled   = "Settled"
	ReasonStalled   = "Stalled"
	ReasonNoBlocker = "NotStalled"

	reasonUnknown = "Unknown"
)

// Effect is the effect of a problem on clients that wait for the object.
type Effect int

const (
	// Passes is the effect of a problem that resolves itself, or is resolved when another object is
	// created. Until then, the object is not ready. It is the default.
	Passes Effect = iota
	// NeedsPerson is the effect of a problem that requires manual intervention.
	NeedsPerson
	// Beside is the effect of a problem that a user should know of, although the object matches its
	// spec: it does not change the three conditions.
	Beside
)

// String returns the name of the effect in the documentation.
func (e Effect) String() string {
	switch e {
	case NeedsPerson:
		return "requires manual intervention"
	case Beside:
		return "beside"
	}
	return "passes"
}

// Effects are the effects of the reasons of condition Degraded.
type Effects map[string]Effect

// NeedsPerson reports whether a reason always requires manual intervention.
func (e Effects) NeedsPerson(reason string) bool { return e[reason] == NeedsPerson }

// Verdict is a kind's assessment of an object, in addition to its conditions Available and Progressing.
type Verdict struct {
	// Idle is true if the object intentionally serves nothing. It then counts as ready, as a Deployment
	// with 0 replicas does.
	Idle bool
	// Blocker is a problem that requires manual intervention. Obstacle is a problem that makes the
	// object not ready and resolves itself. Both are empty if there is none.
	Blocker, Obstacle engine.Notice
}

// Of returns the verdict for condition Degraded.
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

// With adds Ready, Reconciling and Stalled to the conditions of a kind whose problems are all in
// condition Degraded.
func (e Effects) With(conditions []metav1.Condition) []metav1.Condition {
	return With(conditions, e.Of(conditions))
}

// Notice returns the reason and message of a condition.
func Notice(c *metav1.Condition) engine.Notice {
	return engine.Notice{Reason: c.Reason, Message: c.Message}
}

// With adds Ready, Reconciling and Stalled to the conditions of a kind. Exactly one of the three is
// True: the object matches its spec, is being reconciled, or requires manual intervention.
func With(conditions []metav1.Condition, v Verdict) []metav1.Condition {
	s := input{Verdict: v, available: find(conditions, available), progressing: find(conditions, progressing)}
	return slices.Concat(conditions, []metav1.Condition{s.ready(), s.reconciling(), s.stalled()})
}

// find returns the condition of the given type, or an Unknown one if there is none.
func find(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reasonUnknown}
}

// input is what the three conditions are computed from.
type input struct {
	Verdict
	available, progressing metav1.Condition
}

// unmet returns why the object is not ready; empty if it is ready. A blocker takes precedence.
func (s input) unmet() engine.Notice {
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

func (s input) ready() metav1.Condition {
	if why := s.unmet(); why.Reason != "" {
		return condition(Ready, metav1.ConditionFalse, why)
	}
	return condition(Ready, metav1.ConditionTrue, Notice(&s.available))
}

func (s input) reconciling() metav1.Condition {
	why := s.unmet()
	switch {
	case s.Blocker.Reason != "":
		return condition(Reconciling, metav1.ConditionFalse, engine.Notice{Reason: ReasonStalled, Message: "see condition Stalled"})
	case why.Reason != "":
		return condition(Reconciling, metav1.ConditionTrue, why)
	}
	return condition(Reconciling, metav1.ConditionFalse, engine.Notice{Reason: ReasonSettled, Message: "no changes are pending"})
}

func (s input) stalled() metav1.Condition {
	if s.Blocker.Reason != "" {
		return condition(Stalled, metav1.ConditionTrue, s.Blocker)
	}
	return condition(Stalled, metav1.ConditionFalse, engine.Notice{Reason: ReasonNoBlocker, Message: "no manual intervention is required"})
}

// condition returns a condition with the reason and message of a notice.
func condition(kind string, status metav1.ConditionStatus, why engine.Notice) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: why.Reason, Message: why.Message}
}
