package spec

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// LabelRevision is the pod label with the name of the pod's ControllerRevision, as in StatefulSet.
const LabelRevision = appsv1.ControllerRevisionHashLabelKey

// Selects reports whether the selector of the set matches the labels of a pod.
func Selects(set *v1alpha1.StatefulCluster, pod metav1.Object) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.GetLabels()))
}

// OwnPodLabels are the labels that only members have.
var OwnPodLabels = []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember}
