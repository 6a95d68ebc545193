package replicated

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// Intentional changes of a set.

// handOvers switches over, rolls a new template out, and scales down while the primary is the
// member that is removed.
func handOvers(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "handover", 4)
	r.switchTo(ctx, "rss-handover-3")
	r.Event(ctx, r.set, v1alpha1.EventOverrideUsed, "rss-handover-3")
	before := r.lives(ctx)
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Containers[0].Env = append(s.Spec.Pod.Containers[0].Env, corev1.EnvVar{Name: "REVISION", Value: "2"})
	})
	r.renewed(ctx, before)
	// The member that will be removed is primary again.
	r.switchTo(ctx, "rss-handover-3")
	before = r.lives(ctx)
	r.resize(ctx, 3)
	r.untouched(ctx, before, "rss-handover-0", "rss-handover-1", "rss-handover-2")
	r.judge(ctx)
}

// renewed waits until every member was recreated.
func (r *replica) renewed(ctx context.Context, before map[string]life) {
	r.Until(ctx, "all members to be recreated", func(ctx context.Context) {
		now := r.lives(ctx)
		for name, l := range before {
			if now[name].uid == l.uid || now[name].uid == "" {
				r.Read(ctx, r.set)
				r.Fail("%s is the old one, or missing: %s", name, describe(r.set))
			}
		}
	})
	r.whole(ctx)
}

// toZeroAndBack stops the set, tries to start it with too few members, and starts it with all. The
// set is then deleted and recreated on the same data.
func toZeroAndBack(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "zero", 3)
	r.switchTo(ctx, "rss-zero-2")
	r.resize(ctx, 0)
	r.stoppedInOrder("rss-zero-2")
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(2)) })
	r.says(ctx, v1alpha1.ConditionPaused, v1alpha1.ReasonReplicasTooLow)
	lives := r.lives(ctx)
	c.Expect(lives).To(BeEmpty(), "pods returned: %v", lives)
	r.resize(ctx, 3)
	r.goesOnWriting(ctx)
	again := r.set.DeepCopy()
	r.removed(ctx)
	r.set = &v1alpha1.ReplicatedStatefulSet{Spec: again.Spec}
	r.set.Namespace, r.set.Name = again.Namespace, again.Name
	c.Put(ctx, r.set)
	r.whole(ctx)
	r.judge(ctx)
}

// stoppedInOrder checks in the journals that the primary got the last stop command.
func (r *replica) stoppedInOrder(primary string) {
	journals, err := ledgercheck.ReadJournals(r.journals())
	r.Check(err)
	last := record.Line{}
	for _, l := range journals.Lines {
		if l.What == record.Command && l.Text == "stop" && l.At > last.At {
			last = l
		}
	}
	r.Expect(last.Pod).To(Equal(primary), "%q was the last to be stopped, and %s was primary", last.Pod, primary)
}

// pendingForEver has a member that cannot be scheduled, and a primary that dies.
func pendingForEver(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "pending", 3)
	// There are four nodes, and each accepts only one member.
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(5)) })
	r.onePending(ctx)
	old := r.pod(ctx, r.set.Status.Members.Primary[0])
	r.killServer(ctx, old)
	r.goesOnWriting(ctx)
	r.onePending(ctx)
	r.resize(ctx, 3)
	r.judge(ctx)
}

// onePending waits until only one of the two last members does not run, and there is a primary. The
// scheduler decides which of them gets the last node.
func (r *replica) onePending(ctx context.Context) {
	r.Until(ctx, "only one member to be unready", func(ctx context.Context) {
		r.Read(ctx, r.set)
		m := r.set.Status.Members
		one := slices.Equal(m.Unready, []string{"rss-pending-3"}) || slices.Equal(m.Unready, []string{"rss-pending-4"})
		r.Expect(one).To(BeTrue(), "%s", describe(r.set))
		r.Expect(m.Primary).To(HaveLen(1), "%s", describe(r.set))
		r.Expect(m.Secondary).To(HaveLen(len(m.Ready)-1), "%s", describe(r.set))
	})
}

// pausedSet kills the primary's program while the set is paused.
func pausedSet(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "paused", 3)
	old := r.primary(ctx)
	pause := func(paused bool) {
		r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Paused = paused })
	}
	pause(true)
	r.says(ctx, v1alpha1.ConditionPaused, v1alpha1.ReasonPausedByUser)
	r.killServer(ctx, old)
	before := r.lastCommand(ctx)
	r.Consistently(ctx, r.commands).WithTimeout(3*time.Second).WithPolling(200*time.Millisecond).Should(Equal(before), "commands were run in the pause")
	r.keepsPodsOfOrphans(ctx)
	pause(false)
	r.goesOnWriting(ctx)
	r.judge(ctx)
}

// keepsPodsOfOrphans deletes only the StatefulSet. Its replacement must adopt exactly these pods.
func (r *replica) keepsPodsOfOrphans(ctx context.Context) {
	before := r.lives(ctx)
	var old, now appsv1.StatefulSet
	key := client.ObjectKey{Namespace: r.Namespace, Name: "rss-" + r.set.Name}
	r.Check(r.Client.Get(ctx, key, &old))
	r.Remove(ctx, &old, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	r.Until(ctx, "another StatefulSet to have the pods", func(ctx context.Context) {
		r.Check(r.Client.Get(ctx, key, &now))
		r.Expect(now.UID).NotTo(Equal(old.UID), "%s has %d pods", now.UID, now.Status.Replicas)
		r.Expect(int(now.Status.Replicas)).To(Equal(len(before)), "%s has %d pods", now.UID, now.Status.Replicas)
		r.Expect(now.Status.ObservedGeneration).To(Equal(now.Generation), "%s has %d pods", now.UID, now.Status.Replicas)
	})
	r.untouched(ctx, before, slices.Collect(maps.Keys(before))...)
}

// lostPrimary disconnects the primary's node. There is no new primary before the node is back, or a
// user confirms that the machine is off.
func lostPrimary(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "lost", 3)
	old := r.primary(ctx)
	heal := c.Cut(old.Spec.NodeName)
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonNodeUnreachable)
	all := r.reigns()
	c.Expect(len(all)).To(Equal(1), "%d were primary, and the first one may still be primary", len(all))
	heal()
	r.whole(ctx)
	r.goesOnWriting(ctx)
	r.poweredOff(ctx)
}

// poweredOff powers off the primary's machine, and confirms that with the out-of-service taint.
// Then another member becomes primary.
func (r *replica) poweredOff(ctx context.Context) {
	old := r.primary(ctx)
	off := old.Spec.NodeName
	defer r.PowerOn(context.WithoutCancel(ctx), []string{off})
	r.Check(r.Nodes.StopNode(off))
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonNodeUnreachable)
	out := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	kit.Change(ctx, r.Cluster, kit.Node(off), func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, out) })
	r.succeeded(ctx, old.Name)
	r.PowerOn(ctx, []string{off})
	r.whole(ctx)
	r.judge(ctx)
}

// succeeded waits until a member other than old is primary.
func (r *replica) succeeded(ctx context.Context, old string) {
	r.Until(ctx, "another primary than "+old, func(ctx context.Context) {
		r.Read(ctx, r.set)
		m := r.set.Status.Members.Primary
		r.Expect(m).To(HaveLen(1), "%s", describe(r.set))
		r.Expect(m[0]).NotTo(Equal(old), "%s", describe(r.set))
	})
}

// findsItself has two containers. The second one runs the commands.
func findsItself(ctx context.Context, c *kit.Cluster) {
	const secret = "passwords"
	r := &replica{Cluster: c, set: dummy(c, "names")}
	pod := &r.set.Spec.Pod
	other := pod.Containers[0].DeepCopy()
	other.Name, pod.Container = "other", pod.Containers[0].Name
	pod.Containers = slices.Insert(pod.Containers, 0, *other)
	r.set.Spec.Secrets = []string{secret}
	c.Put(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: c.Namespace}, StringData: map[string]string{"root": "hush"}})
	c.Put(ctx, r.set)
	r.whole(ctx)
	pods := r.pods(ctx)
	for _, p := range pods {
		for _, container := range p.Spec.Containers {
			want := fmt.Sprintf("names-svc %s %s hush app=\"names\" %t\n", p.Name, p.Namespace, container.Name == pod.Container)
			said := c.Exec(ctx, client.ObjectKeyFromObject(&p), container.Name, "/bin/sh", "-c",
				`echo $SERVICE_NAME $POD_NAME $POD_NAMESPACE $(cat /etc/rss/secrets/`+secret+`/root) $(grep '^app=' /etc/podinfo/labels) $(test -e /tmp/running && echo true || echo false)`)
			c.Expect(said).To(Equal(want), "the output of container %s of %s", container.Name, p.Name)
		}
	}
}
