package extendedstatefulset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// keepServices creates both Services. It ignores Services of other owners. For its own Services it
// restores only the selector, so that users may change the ports and the type.
func keepServices(f *facts, p *plan) {
	for _, want := range buildServices(f.set, f.traffic().serves()) {
		have := f.services[want.Name]
		switch {
		case have == nil:
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		case !controls(f.set, have) || have.DeletionTimestamp != nil:
		case !maps.Equal(have.Spec.Selector, want.Spec.Selector):
			next := have.DeepCopy()
			next.Spec.Selector = want.Spec.Selector
			p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonChild,
				Detail: fmt.Sprintf("selects %s", selected(want.Spec.Selector))}})
		}
	}
}

// traffic evaluates where clients are sent.
type traffic struct{ *facts }

func (f *facts) traffic() traffic { return traffic{f} }

// foreignService returns the name of the active Service if it belongs to another owner; else "". It is
// ignored, and may select pods of another application. The headless Service may belong to any owner, as
// for a StatefulSet.
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

// serves returns the selector of the serving pods: those of the current version, or of all versions
// while ordinals move. In that case no ordinal has two pods.
func (t traffic) serves() map[string]string {
	selector := map[string]string{v1alpha1.LabelSet: t.set.Name}
	if !t.moving() {
		selector[v1alpha1.LabelVersion] = strconv.FormatInt(t.record.CurrentVersion, 10)
	}
	return selector
}

// moving reports whether another version has, or is about to get, ordinals that the current version
// lacks.
func (t traffic) moving() bool {
	return t.mayMove() || slices.ContainsFunc(t.children, t.hasOthers)
}

// mayMove reports whether the upgrade in progress moves ordinals.
func (t traffic) mayMove() bool {
	u := t.record.Update
	if u == nil || u.Handover != v1alpha1.HandoverPerOrdinal {
		return false
	}
	switch t.record.Phase {
	case v1alpha1.PhasePreJob, v1alpha1.PhaseAborted:
		return false
	case v1alpha1.PhaseStale:
		return t.unreturned() != ""
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

// switched reports whether clients are sent to the pods that serve now.
func (t traffic) switched() bool {
	have := t.services[activeService(t.set)]
	if t.set.Spec.Template.Spec.ServiceName == "" || have == nil || !controls(t.set, have) {
		return true
	}
	return maps.Equal(have.Spec.Selector, t.serves())
}
