package extendedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// born returns a pod as the StatefulSet controller creates it for version 12 of web, ordinal 2.
func born(namespace string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-v12-2",
			Labels: map[string]string{v1alpha1.LabelSet: "web", v1alpha1.LabelStatefulSet: "web", v1alpha1.LabelVersion: "12", appsv1.PodIndexLabel: "2"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web-v12", UID: "12",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}},
		Spec: corev1.PodSpec{Hostname: "web-v12-2", Containers: []corev1.Container{{Name: "web", Image: "web"}}, Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "web-unassigned"}}},
			{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func hostnames(pod *corev1.Pod) {
	pod.Annotations = map[string]string{v1alpha1.AnnotationHostnames: v1alpha1.True}
}

var _ = Describe("E26 a new pod", func() {
	const claim = "data"
	given := func(ctx context.Context, pod *corev1.Pod) (string, []string) {
		GinkgoHelper()
		l := &apiserver.Warned{}
		Expect(l.Client(server).Create(ctx, pod)).To(Succeed())
		Expect(pod.Spec.Volumes[1].EmptyDir).NotTo(BeNil())
		return pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, l.Texts
	}
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	It("gets the claim of its ordinal, and keeps the host name of its version", func(ctx SpecContext) {
		pod := born(ns)
		name, heard := given(ctx, pod)
		Expect(name).To(Equal(claim + "-web-2"))
		Expect(heard).To(BeEmpty())
		Expect(pod.Spec.Hostname).To(Equal("web-v12-2"))
		Expect(pod.Labels).To(HaveKeyWithValue(v1alpha1.LabelPodOrdinal, "2"))
	})

	It("gets the host name of its ordinal with PerOrdinal", func(ctx SpecContext) {
		pod := born(ns, hostnames)
		name, _ := given(ctx, pod)
		Expect(name).To(Equal(claim + "-web-2"))
		Expect(pod.Spec.Hostname).To(Equal("web-2"))
	})

	It("gets the claim and the host name of its zone", func(ctx SpecContext) {
		pod := born(ns, hostnames, func(pod *corev1.Pod) {
			pod.Name, pod.Labels[v1alpha1.LabelStatefulSet], pod.OwnerReferences[0].Name = "web-z1-v12-2", "web-z1", "web-z1-v12"
		})
		name, _ := given(ctx, pod)
		Expect(name).To(Equal(claim + "-web-z1-2"))
		Expect(pod.Spec.Hostname).To(Equal("web-z1-2"))
	})

	It("without an index keeps a claim that never exists, and causes a warning with the reason", func(ctx SpecContext) {
		name, heard := given(ctx, born(ns, hostnames, func(pod *corev1.Pod) { delete(pod.Labels, appsv1.PodIndexLabel) }))
		Expect(name).To(Equal("web-unassigned"))
		Expect(heard).To(ConsistOf("ExtendedStatefulSet assigns no claims to this pod: label apps.kubernetes.io/pod-index is missing; StatefulSets set it since Kubernetes 1.28"))
	})

	It("that another client labeled gets no claim", func(ctx SpecContext) {
		name, heard := given(ctx, born(ns, hostnames, func(pod *corev1.Pod) { pod.OwnerReferences, pod.Name = nil, "mine" }))
		Expect(name).To(Equal("web-unassigned"))
		Expect(heard).To(ConsistOf("ExtendedStatefulSet assigns no claims to this pod: its controller is not StatefulSet web-v12"))
	})

	It("of another application is ignored", func(ctx SpecContext) {
		name, heard := given(ctx, born(ns, hostnames, func(pod *corev1.Pod) { delete(pod.Labels, v1alpha1.LabelSet) }))
		Expect(name).To(Equal("web-unassigned"))
		Expect(heard).To(BeEmpty())
	})
})
