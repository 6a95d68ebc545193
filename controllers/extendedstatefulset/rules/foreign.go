package rules

import (
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// The Services and budgets of an ExtendedStatefulSet select pods by labels, and any user who may
// create pods can set labels. A pod that belongs to no version would receive client traffic, so the
// operator removes the labels from it.

// RemoveLabels removes the operator's labels from pods that belong to no version.
func RemoveLabels(f *facts.Facts, p *Plan) {
	for _, pod := range f.ForeignPods {
		p.Do(action.RemoveLabels(pod.Pod, pod.Labels, v1alpha1.EventForeignPod, "it belongs to no version"))
	}
}
