package extendedstatefulset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// keepServices makes the two Services. One of that name that is not ours is
// left alone; of ours the selector is kept, and nothing else, so that users may
// give them other ports and another type.
func keepServices(w *world, p *plan) {
	for _, want := range buildServices(w.set, w.traffic().serves()) {
		have := w.services[want.Name]
		switch {
		case have == nil:
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		case !controls(w.set, have) || have.DeletionTimestamp != nil:
		case !maps.Equal(have.Spec.Selector, want.Spec.Selector):
			next := have.DeepCopy()
			next.Spec.Selector = want.Spec.Selector
			p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonChild,
				Detail: fmt.Sprintf("selects %s", selected(want.Spec.Selector))}})
		}
	}
}

// traffic is where clients are sent to.
type traffic struct{ *world }

func (w *world) traffic() traffic { return traffic{w} }

// foreignService is the active Service if it is not ours: it may select pods of
// another application, and it is left alone. The headless one may belong to anyone,
// as that of a StatefulSet. "" where all is well.
func (t traffic) foreignService() string {
	have := t.services[activeService(t.set)]
	if have == nil || controls(t.set, have) {
		return ""
	}
	return have.Name
}

func selected(selector map[string]string) string {
	if v := selector[v1alpha1.LabelVersion]; v != "" {
		return "version " + v
	}
	return "every version"
}

// serves selects the pods that serve: those of the current version, or while
// ordinals move of any: then no ordinal is there twice.
func (t traffic) serves() map[string]string {
	selector := map[string]string{v1alpha1.LabelSet: t.set.Name}
	if !t.moving() {
		selector[v1alpha1.LabelVersion] = strconv.FormatInt(t.record.CurrentVersion, 10)
	}
	return selector
}

// moving reports whether another version has ordinals that the current one lacks, or
// is about to.
func (t traffic) moving() bool {
	return t.mayMove() || slices.ContainsFunc(t.children, t.hasOthers)
}

// mayMove reports whether the upgrade under way moves ordinals.
func (t traffic) mayMove() bool {
	u := t.record.Update
	if u == nil || u.Handover != v1alpha1.HandoverPerOrdinal {
		return false
	}
	switch t.record.Phase {
	case v1alpha1.PhasePreJob, v1alpha1.PhaseAborted:
		return false
	case v1alpha1.PhaseStale:
		return t.standing(t.record.CurrentVersion).unreturned() != ""
	}
	return true
}

// hasOthers reports whether a StatefulSet has ordinals that the current version lacks.
func (t traffic) hasOthers(c *child) bool {
	current := t.children.find(c.zone, t.record.CurrentVersion)
	if c.version == t.record.CurrentVersion || current == nil {
		return false
	}
	for o := c.span().start; o < min(c.span().end(), t.replicas); o++ {
		if !current.span().has(o) {
			return true
		}
	}
	return false
}

// switched reports whether clients are sent to what serves now.
func (t traffic) switched() bool {
	have := t.services[activeService(t.set)]
	if t.set.Spec.Template.Spec.ServiceName == "" || have == nil || !controls(t.set, have) {
		return true
	}
	return maps.Equal(have.Spec.Selector, t.serves())
}
