package promises

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// What people do to a set on purpose.

func (r *replica) reigns() []ledgercheck.Reign {
	all, err := ledgercheck.ReadReigns(r.journals())
	r.check(err)
	return all
}

// handOvers switches over, rolls a new template out, and scales down while the
// primary is the member that goes.
func handOvers(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "handover", 4)
	r.switchTo(ctx, "rss-handover-3")
	r.event(ctx, r.set, v1alpha1.EventOverrideUsed, "rss-handover-3")
	before := r.lives(ctx)
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Containers[0].Env = append(s.Spec.Pod.Containers[0].Env, corev1.EnvVar{Name: "REVISION", Value: "2"})
	})
	r.renewed(ctx, before)
	// The one that goes is primary again.
	r.switchTo(ctx, "rss-handover-3")
	before = r.lives(ctx)
	r.resize(ctx, 3)
	r.untouched(ctx, before, "rss-handover-0", "rss-handover-1", "rss-handover-2")
	r.judge(ctx)
}

// renewed waits until every member is another one than before.
func (r *replica) renewed(ctx context.Context, before map[string]life) {
	r.until(ctx, "all members to be made anew", func(ctx context.Context) {
		now := r.lives(ctx)
		for name, l := range before {
			if now[name].uid == l.uid || now[name].uid == "" {
				r.read(ctx, r.set)
				r.fail("%s is the old one, or missing: %s", name, tellSet(r.set))
			}
		}
	})
	r.whole(ctx)
}

// toZeroAndBack stops the set, tries to come back with too few members, comes
// back with all, and is deleted and made again on the same data.
func toZeroAndBack(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "zero", 3)
	r.switchTo(ctx, "rss-zero-2")
	r.resize(ctx, 0)
	r.stoppedInOrder("rss-zero-2")
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(2)) })
	r.says(ctx, v1alpha1.ConditionPaused, v1alpha1.ReasonReplicasTooLow)
	lives := r.lives(ctx)
	c.Expect(len(lives) > 0).To(BeFalse(), "pods came back: %v", lives)
	r.resize(ctx, 3)
	r.goesOnWriting(ctx)
	again := r.set.DeepCopy()
	r.removed(ctx)
	r.set = &v1alpha1.ReplicatedStatefulSet{Spec: again.Spec}
	r.set.Namespace, r.set.Name = again.Namespace, again.Name
	c.put(ctx, r.set)
	r.whole(ctx)
	r.judge(ctx)
}

// stoppedInOrder asks the journals whether the primary was the last to be told to
// stop.
func (r *replica) stoppedInOrder(primary string) {
	journals, err := ledgercheck.ReadJournals(r.journals())
	r.check(err)
	last := record.Line{}
	for _, l := range journals.Lines {
		if l.What == record.Command && l.Text == "stop" && l.At > last.At {
			last = l
		}
	}
	r.Expect(last.Pod != primary).To(BeFalse(), "%q was the last to be told to stop, and %s was primary", last.Pod, primary)
}

// says waits until a condition is true for that reason.
func (r *replica) says(ctx context.Context, condition, reason string) {
	r.until(ctx, condition+" to be true: "+reason, func(ctx context.Context) {
		r.read(ctx, r.set)
		found := meta.FindStatusCondition(r.set.Status.Conditions, condition)
		r.Expect(found == nil || found.Status != "True" || found.Reason != reason).To(BeFalse(), "%s", tellSet(r.set))
	})
}

// pendingForEver has a member that finds no node, and a primary that dies.
func pendingForEver(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "pending", 3)
	// There are four nodes, and each takes one member only.
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(5)) })
	r.onePending(ctx)
	old := r.pod(ctx, r.set.Status.Members.Primary[0])
	r.killServer(ctx, old)
	r.goesOnWriting(ctx)
	r.onePending(ctx)
	r.resize(ctx, 3)
	r.judge(ctx)
}

// onePending waits until one of the two last members alone does not run, and there
// is a primary. Which of them finds the last node is the scheduler's to say.
func (r *replica) onePending(ctx context.Context) {
	r.until(ctx, "one member alone to be unready", func(ctx context.Context) {
		r.read(ctx, r.set)
		m := r.set.Status.Members
		one := slices.Equal(m.Unready, []string{"rss-pending-3"}) || slices.Equal(m.Unready, []string{"rss-pending-4"})
		r.Expect(!one || len(m.Primary) != 1 || len(m.Secondary) != len(m.Ready)-1).To(BeFalse(), "%s", tellSet(r.set))
	})
}

// pausedSet kills the primary's program while nothing may be done.
func pausedSet(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "paused", 3)
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

// lastCommand waits until what was sent before a pause has arrived, and says how many
// commands that were.
func (r *replica) lastCommand(ctx context.Context) int {
	last := -1
	r.until(ctx, "the last command to have arrived", func(ctx context.Context) {
		if now := r.commands(); now != last {
			last = now
			sleep(ctx, time.Second)
			r.fail("%d were run", now)
		}
	})
	return last
}

// keepsPodsOfOrphans deletes the StatefulSet alone: one that takes its place shall have
// as many pods, and these.
func (r *replica) keepsPodsOfOrphans(ctx context.Context) {
	before := r.lives(ctx)
	var old, now appsv1.StatefulSet
	key := client.ObjectKey{Namespace: r.Namespace, Name: "rss-" + r.set.Name}
	r.check(r.Client.Get(ctx, key, &old))
	r.remove(ctx, &old, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	r.until(ctx, "another StatefulSet to have the pods", func(ctx context.Context) {
		r.check(r.Client.Get(ctx, key, &now))
		r.Expect(now.UID == old.UID || int(now.Status.Replicas) != len(before) || now.Status.ObservedGeneration != now.Generation).To(BeFalse(), "%s has %d pods", now.UID, now.Status.Replicas)
	})
	r.untouched(ctx, before, slices.Collect(maps.Keys(before))...)
}

// commands counts those that the members were told.
func (r *replica) commands() (n int) {
	journals, err := ledgercheck.ReadJournals(r.journals())
	r.check(err)
	for _, l := range journals.Lines {
		if l.What == record.Command || l.What == record.Asked {
			n++
		}
	}
	return n
}

// lostPrimary cuts the primary's node off: nobody takes its place before it is
// back, or a person says that the machine is off.
func lostPrimary(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "lost", 3)
	old := r.primary(ctx)
	heal := c.cut(old.Spec.NodeName)
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonNodeUnreachable)
	all := r.reigns()
	c.Expect(len(all)).To(Equal(1), "%d were primary, and the first one may be still", len(all))
	heal()
	r.whole(ctx)
	r.goesOnWriting(ctx)
	r.poweredOff(ctx)
}

// poweredOff switches the primary's machine off, and says so: then another one
// takes its place.
func (r *replica) poweredOff(ctx context.Context) {
	old := r.primary(ctx)
	off := old.Spec.NodeName
	defer r.powerOn(context.WithoutCancel(ctx), []string{off})
	r.check(r.Nodes.StopNode(off))
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonNodeUnreachable)
	out := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	change(ctx, r.Cluster, node(off), func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, out) })
	r.succeeded(ctx, old.Name)
	r.powerOn(ctx, []string{off})
	r.whole(ctx)
	r.judge(ctx)
}

// succeeded waits until another member than that is primary.
func (r *replica) succeeded(ctx context.Context, old string) {
	r.until(ctx, "another primary than "+old, func(ctx context.Context) {
		r.read(ctx, r.set)
		m := r.set.Status.Members.Primary
		r.Expect(len(m) != 1 || m[0] == old).To(BeFalse(), "%s", tellSet(r.set))
	})
}

// findsItself has two containers, of which the second one runs the commands.
func findsItself(ctx context.Context, c *Cluster) {
	const secret = "passwords"
	r := &replica{Cluster: c, set: c.dummy("names")}
	pod := &r.set.Spec.Pod
	other := pod.Containers[0].DeepCopy()
	other.Name, pod.Container = "other", pod.Containers[0].Name
	pod.Containers = slices.Insert(pod.Containers, 0, *other)
	r.set.Spec.Secrets = []string{secret}
	c.put(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: c.Namespace}, StringData: map[string]string{"root": "hush"}})
	c.put(ctx, r.set)
	r.whole(ctx)
	pods := r.pods(ctx)
	for _, p := range pods {
		for _, container := range p.Spec.Containers {
			want := fmt.Sprintf("names-svc %s %s hush app=\"names\" %t\n", p.Name, p.Namespace, container.Name == pod.Container)
			said := c.exec(ctx, client.ObjectKeyFromObject(&p), container.Name, "/bin/sh", "-c",
				`echo $SERVICE_NAME $POD_NAME $POD_NAMESPACE $(cat /etc/rss/secrets/`+secret+`/root) $(grep '^app=' /etc/podinfo/labels) $(test -e /tmp/running && echo true || echo false)`)
			c.Expect(said).To(Equal(want), "what container %s of %s says", container.Name, p.Name)
		}
	}
}
