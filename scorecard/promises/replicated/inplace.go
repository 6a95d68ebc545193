package replicated

import (
	"context"
	"slices"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// sizedMembers changes the resources of the members while a client writes. No container is
// restarted, and no role handed over. Then it requests more than any Node has, which is rolled out with
// one secondary, and corrects that.
func sizedMembers(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "sized", 3, func(s *v1alpha1.ReplicatedStatefulSetSpec) {
		s.UpdateStrategy = &v1alpha1.UpdateStrategy{InPlace: v1alpha1.InPlaceResources}
	})
	before, reigns, primary := r.lives(ctx), len(r.reigns()), r.set.Status.Members.Primary
	r.asksFor(ctx, "10m", "24Mi")
	r.sized(ctx, "10m", "24Mi")
	r.untouched(ctx, before, "rss-sized-0", "rss-sized-1", "rss-sized-2")
	r.Expect(r.reigns()).To(HaveLen(reigns), "the role was handed over")
	r.goesOnWriting(ctx)

	r.asksFor(ctx, "500", "24Mi")
	// Since 1.36, the API server refuses the resize itself, before a kubelet reports Infeasible.
	r.Event(ctx, r.set, v1alpha1.EventNotInPlace, "cannot be changed in place")
	r.Until(ctx, "only one member to be recreated", func(ctx context.Context) {
		same := 0
		for name, now := range r.lives(ctx) {
			if now == before[name] {
				same++
			}
		}
		r.Expect(same).To(Equal(2), "%d are unchanged", same)
	})
	r.Read(ctx, r.set)
	r.Expect(slices.Equal(r.set.Status.Members.Primary, primary)).To(BeTrue(), "%s", describe(r.set))
	r.asksFor(ctx, "12m", "24Mi")
	r.sized(ctx, "12m", "24Mi")
	r.untouched(ctx, before, primary...)
	r.goesOnWriting(ctx)
	r.judge(ctx)
}

// asksFor changes the resource requests of the members.
func (r *replica) asksFor(ctx context.Context, cpu, memory string) {
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}
	})
}

// sized waits until the kubelets report these resources for all members, and the StatefulSet counts
// them as updated.
func (r *replica) sized(ctx context.Context, cpu, memory string) {
	r.Until(ctx, "all members to have "+cpu+" and "+memory, func(ctx context.Context) {
		for _, pod := range r.pods(ctx) {
			r.Expect(pod.Status.ContainerStatuses).NotTo(BeEmpty(), "%s does not run", pod.Name)
			has := pod.Status.ContainerStatuses[0].Resources
			r.Expect(has).NotTo(BeNil(), "the kubelet does not report the resources of %s", pod.Name)
			r.Expect([]string{has.Requests.Cpu().String(), has.Requests.Memory().String()}).To(Equal([]string{cpu, memory}), "%s", pod.Name)
			r.Expect(pod.Annotations).NotTo(HaveKey(v1alpha1.AnnotationInPlace), "%s", pod.Name)
		}
		var set appsv1.StatefulSet
		r.Check(r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "rss-" + r.set.Name}, &set))
		r.Expect(set.Status.UpdatedReplicas).To(Equal(*r.set.Spec.Replicas), "%d are updated", set.Status.UpdatedReplicas)
	})
	r.whole(ctx)
}
