package extendedstatefulset

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/mutant"
)

// The Services and budgets of an ExtendedStatefulSet select pods by labels, and whoever may create pods
// can write these. A pod that is none of its versions would receive what clients write. So the labels
// are removed from it.

// ownPodLabels are those by which Services and budgets select pods.
var ownPodLabels = []string{v1alpha1.LabelSet, v1alpha1.LabelVersion, v1alpha1.LabelStatefulSet, v1alpha1.LabelPodActive}

// mostForeign is the max number of foreign pods that a pass looks at. The next pass looks at others.
const mostForeign = 100

// isForeign reports whether a pod with our labels belongs to no version: it has another name than pods of
// a version, or another controller than a StatefulSet of that name. One without a controller may have
// been orphaned, and its StatefulSet adopts it.
func isForeign(pod *corev1.Pod, isNamed bool) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	controller := metav1.GetControllerOf(pod)
	if !isNamed || controller == nil {
		return !isNamed
	}
	stem := pod.Name[:strings.LastIndex(pod.Name, "-")]
	return controller.Kind != "StatefulSet" || controller.APIVersion != appsv1.SchemeGroupVersion.String() || controller.Name != stem
}

// removeLabels removes our labels from pods that belong to no version.
func removeLabels(w *world, p *plan) {
	if mutant.Is("ests-label-makes-endpoint") { // Mutant: a label makes a pod an endpoint and part of a budget.
		return
	}
	for _, pod := range w.foreignPods {
		next := pod.DeepCopy()
		for _, label := range ownPodLabels {
			delete(next.Labels, label)
		}
		if _, _, _, isNamed := parsePod(w.set.Name, pod.Name); isNamed {
			// It may have the claims of its ordinal, so it stays in sight.
			next.Labels[v1alpha1.LabelSet] = w.set.Name
		}
		if maps.Equal(next.Labels, pod.Labels) {
			continue
		}
		p.Do(action.Chain{{Verb: action.Patch, Object: next, From: pod, Reason: v1alpha1.EventForeignPod, Detail: "it belongs to no version"}})
	}
}
