package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// keepServices creates both Services. It ignores Services of other owners. For its own Services it
// restores only the selector, so that users may change the ports and the type.
func keepServices(f *facts.Facts, p *Plan) {
	for _, want := range children.BuildServices(f.Set, ServingLabels(f)) {
		have := f.Services[want.Name]
		switch {
		case have == nil:
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		case !children.Controls(f.Set, have) || have.DeletionTimestamp != nil:
		case !maps.Equal(have.Spec.Selector, want.Spec.Selector):
			next := have.DeepCopy()
			next.Spec.Selector = want.Spec.Selector
			p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonChild,
				Detail: fmt.Sprintf("selects %s", Selected(want.Spec.Selector))}})
		}
	}
}

// ForeignService returns the name of the active Service if it belongs to another owner; else "". It is
// ignored, and may select pods of another application. The headless Service may belong to any owner, as
// for a StatefulSet.
func ForeignService(f *facts.Facts) string {
	have := f.Services[spec.ActiveService(f.Set)]
	if have == nil || children.Controls(f.Set, have) {
		return ""
	}
	return have.Name
}

// Selected describes the pods that a selector of the active Service selects.
func Selected(selector map[string]string) string {
	if v := selector[v1alpha1.LabelVersion]; v != "" {
		return "version " + v
	}
	return "every version"
}

// ServingLabels returns the selector of the serving pods: those of the current version, or of all
// versions while ordinals move. In that case no ordinal has two pods.
func ServingLabels(f *facts.Facts) map[string]string {
	selector := map[string]string{v1alpha1.LabelSet: f.Set.Name}
	if !Moving(f) {
		selector[v1alpha1.LabelVersion] = strconv.FormatInt(f.Record.CurrentVersion, 10)
	}
	return selector
}

// Moving reports whether another version has, or is about to get, ordinals that the current version
// lacks.
func Moving(f *facts.Facts) bool {
	return mayMove(f) || slices.ContainsFunc(f.Children, func(c *facts.Child) bool { return hasOthers(f, c) })
}

// mayMove reports whether the upgrade in progress moves ordinals.
func mayMove(f *facts.Facts) bool {
	u := f.Record.Update
	if u == nil || u.Handover != v1alpha1.HandoverPerOrdinal {
		return false
	}
	switch f.Record.Phase {
	case v1alpha1.PhasePreJob, v1alpha1.PhaseAborted:
		return false
	case v1alpha1.PhaseStale:
		return f.Unreturned() != ""
	}
	return true
}

// hasOthers reports whether a StatefulSet has ordinals that the current version lacks.
func hasOthers(f *facts.Facts, c *facts.Child) bool {
	current := f.Children.Find(c.Zone, f.Record.CurrentVersion)
	if c.Version == f.Record.CurrentVersion || current == nil {
		return false
	}
	for o := c.Span().Start; o < min(c.Span().End(), f.Replicas); o++ {
		if !current.Span().Has(o) {
			return true
		}
	}
	return false
}

// clientsSwitched reports whether the active Service selects the pods that serve now. It is also true if
// the operator does not manage that Service.
func clientsSwitched(f *facts.Facts) bool {
	have := f.Services[spec.ActiveService(f.Set)]
	if f.Set.Spec.Template.Spec.ServiceName == "" || have == nil || !children.Controls(f.Set, have) {
		return true
	}
	return maps.Equal(have.Spec.Selector, ServingLabels(f))
}
