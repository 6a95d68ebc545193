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
	for _, want := range buildServices(f.set, servingLabels(f)) {
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

// foreignService returns the name of the active Service if it belongs to another owner; else "". It is
// ignored, and may select pods of another application. The headless Service may belong to any owner, as
// for a StatefulSet.
func foreignService(f *facts) string {
	have := f.services[activeService(f.set)]
	if have == nil || controls(f.set, have) {
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

// servingLabels returns the selector of the serving pods: those of the current version, or of all
// versions while ordinals move. In that case no ordinal has two pods.
func servingLabels(f *facts) map[string]string {
	selector := map[string]string{v1alpha1.LabelSet: f.set.Name}
	if !moving(f) {
		selector[v1alpha1.LabelVersion] = strconv.FormatInt(f.record.CurrentVersion, 10)
	}
	return selector
}

// moving reports whether another version has, or is about to get, ordinals that the current version
// lacks.
func moving(f *facts) bool {
	return mayMove(f) || slices.ContainsFunc(f.children, func(c *child) bool { return hasOthers(f, c) })
}

// mayMove reports whether the upgrade in progress moves ordinals.
func mayMove(f *facts) bool {
	u := f.record.Update
	if u == nil || u.Handover != v1alpha1.HandoverPerOrdinal {
		return false
	}
	switch f.record.Phase {
	case v1alpha1.PhasePreJob, v1alpha1.PhaseAborted:
		return false
	case v1alpha1.PhaseStale:
		return f.unreturned() != ""
	}
	return true
}

// hasOthers reports whether a StatefulSet has ordinals that the current version lacks.
func hasOthers(f *facts, c *child) bool {
	current := f.children.find(c.zone, f.record.CurrentVersion)
	if c.version == f.record.CurrentVersion || current == nil {
		return false
	}
	for o := c.span().start; o < min(c.span().end(), f.replicas); o++ {
		if !current.span().has(o) {
			return true
		}
	}
	return false
}

// clientsSwitched reports whether clients are sent to the pods that serve now.
func clientsSwitched(f *facts) bool {
	have := f.services[activeService(f.set)]
	if f.set.Spec.Template.Spec.ServiceName == "" || have == nil || !controls(f.set, have) {
		return true
	}
	return maps.Equal(have.Spec.Selector, servingLabels(f))
}
