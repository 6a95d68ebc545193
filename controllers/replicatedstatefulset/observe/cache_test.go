package observe_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestTheCacheKeepsLittleOfStrangers(t *testing.T) {
	g := NewWithT(t)
	labels := map[string]string{}
	for i := range 1000 {
		labels[fmt.Sprint(i)] = strings.Repeat("x", 60)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels, Finalizers: []string{v1alpha1.FinalizerMember},
		Annotations: map[string]string{"a": "b", v1alpha1.AnnotationTemplate: "t"}}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, spec.MaxContainers)}}
	cut, err := observe.CutPod(pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cut.(*corev1.Pod).ObjectMeta).To(Equal(metav1.ObjectMeta{Finalizers: pod.Finalizers, Annotations: map[string]string{v1alpha1.AnnotationTemplate: "t"}}))
	g.Expect(cut.(*corev1.Pod).Spec.Containers).To(HaveLen(spec.MaxContainers), "a pod with the max number of containers keeps them")
	pod.Spec.Containers = make([]corev1.Container, spec.MaxContainers+1)
	cut, err = observe.CutPod(pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cut.(*corev1.Pod).Spec.Containers).To(BeEmpty())

	rule := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"a": "b"}}}
	cut, err = observe.CutRule(rule)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cut.(*metav1.PartialObjectMetadata).ObjectMeta).To(Equal(metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}))
}
