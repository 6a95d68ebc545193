package replicated

import (
	"context"
	"fmt"
	"os"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// walkThrough follows the original's guide, with its commands.
func walkThrough(ctx context.Context, c *kit.Cluster) {
	r := &replica{Cluster: c, set: dummy(c, "example")}
	c.Put(ctx, r.set)
	r.whole(ctx)
	m := r.set.Status.Members
	c.Expect(m.Primary).To(HaveLen(3), "all three should be primary: %s", describe(r.set))
	c.Expect(m.Primary).To(Equal(m.Ready), "all three should be primary: %s", describe(r.set))
	before := r.lives(ctx)
	for _, size := range []int32{5, 3} {
		r.resize(ctx, size)
	}
	r.untouched(ctx, before, "rss-example-0", "rss-example-1", "rss-example-2")
	r.replacedMember(ctx, "rss-example-0")
	r.untouched(ctx, before, "rss-example-1", "rss-example-2")
	r.withoutOperator(ctx, before)
}

// withoutOperator deletes a member while no operator runs.
func (r *replica) withoutOperator(ctx context.Context, before map[string]life) {
	r.WhileNoOperator(ctx, func() { r.anotherPod(ctx, r.deletePod(ctx, "rss-example-0")) })
	r.startedAgain(ctx, "rss-example-0")
	r.untouched(ctx, before, "rss-example-1", "rss-example-2")
}

// dummy returns the original's sample. Its scripts are inlined in the commands.
func dummy(c *kit.Cluster, name string) *v1alpha1.ReplicatedStatefulSet {
	run := func(script string) v1alpha1.Command {
		return v1alpha1.Command{Command: []string{"/bin/sh", "-c", script, name}, Timeout: "60s"}
	}
	return &v1alpha1.ReplicatedStatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
		Spec: v1alpha1.ReplicatedStatefulSetSpec{
			Replicas: new(int32(3)), ReconcileInterval: "30s",
			Pod: v1alpha1.PodPolicy{
				TerminationGracePeriodSeconds: new(int64(2)),
				Commands: map[string]v1alpha1.Command{
					"sequence": run("echo 7"), "status": run("test -e /tmp/running || exit 7"), "stop": run("rm -f /tmp/running"),
					"seed": run("date > /tmp/running"), "primary": run("date > /tmp/running"),
				},
				Containers: []corev1.Container{{Name: "dummy", Image: c.Image, Command: []string{"/bin/sh", "-c", "trap 'exit 0' TERM" + kit.Idle}}},
			},
		},
	}
}

// fromManifest returns the original's manifest with an image that exists.
func fromManifest(c *kit.Cluster) *replica {
	text, err := os.ReadFile(c.DummySample)
	c.Check(err)
	set := &v1alpha1.ReplicatedStatefulSet{}
	c.Check(yaml.UnmarshalStrict(text, set))
	set.Namespace, set.Spec.Pod.Containers[0].Image = c.Namespace, c.Dummy
	return &replica{Cluster: c, set: set}
}

// originalManifest applies the original's manifest unchanged, and then with 7 members, 3 of them
// primary. There are four nodes, so members may share a node. A primary is lost while 5 members are
// removed, and another while they are added again.
func originalManifest(ctx context.Context, c *kit.Cluster) {
	r := fromManifest(c)
	c.Put(ctx, r.set)
	r.whole(ctx)
	m := r.set.Status.Members
	c.Expect(len(m.Primary)).To(Equal(3), "all three should be primary: %s", describe(r.set))
	r = fromManifest(c)
	r.set.Name, r.set.Spec.Replicas, r.set.Spec.Primaries, r.set.Spec.Pod.AntiAffinity = "seven", new(int32(7)), new(int32(3)), false
	c.Put(ctx, r.set)
	r.staffed(ctx, 7, 3)
	for _, size := range []struct{ replicas, primaries int32 }{{2, 2}, {7, 3}} {
		r.deletePod(ctx, r.set.Status.Members.Primary[0])
		r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Replicas, s.Spec.Primaries = &size.replicas, &size.primaries
		})
		r.staffed(ctx, int(size.replicas), int(size.primaries))
	}
}

// staffed waits until that many members run, and that many of them are primary. The original's
// sample has no command for secondaries.
func (r *replica) staffed(ctx context.Context, members, primaries int) {
	r.Until(ctx, fmt.Sprintf("%d members, %d of them primary", members, primaries), func(ctx context.Context) {
		r.Read(ctx, r.set)
		s := r.set.Status
		r.Expect(len(s.Grants)).To(BeNumerically("<=", 3), "more than three may be primary: %s", describe(r.set))
		r.Expect(s.ObservedGeneration != r.set.Generation || len(s.Members.Ready) != members || len(s.Members.Unready) > 0 || len(s.Members.Primary) != primaries ||
			!meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing) || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable)).To(BeFalse(), "%s", describe(r.set))
	})
}
