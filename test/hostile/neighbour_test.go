package hostile

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// wanted is what a neighbour asks for: a StatefulCluster of one.
func wanted(namespace string) *v1alpha1.StatefulCluster {
	labels := map[string]string{"app": "one"}
	return &v1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Spec: v1alpha1.StatefulClusterSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "one"}}}},
	}}
}
