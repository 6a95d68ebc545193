package promises

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// What people do to a set on purpose.

func (r *replica) reigns() ([]ledgercheck.Reign, error) {
	return ledgercheck.ReadReigns(r.journals())
}

// handOvers switches over, rolls a new template out, and scales down while the
// primary is the member that goes.
func handOvers(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "handover", 4)
	if err != nil {
		return err
	}
	if err := errors.Join(r.switchTo(ctx, "rss-handover-3"),
		r.told(ctx, v1alpha1.EventOverrideUsed, "rss-handover-3")); err != nil {
		return err
	}
	before, err := r.lives(ctx)
	if err != nil {
		return err
	}
	err = r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Containers[0].Env = append(s.Spec.Pod.Containers[0].Env, corev1.EnvVar{Name: "REVISION", Value: "2"})
	})
	if err != nil {
		return err
	}
	if err := r.renewed(ctx, before); err != nil {
		return err
	}
	// The one that goes is primary again.
	if err := r.switchTo(ctx, "rss-handover-3"); err != nil {
		return err
	}
	if before, err = r.lives(ctx); err != nil {
		return err
	}
	if err := errors.Join(r.resize(ctx, 3), r.untouched(ctx, before, "rss-handover-0", "rss-handover-1", "rss-handover-2")); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

// renewed waits until every member is another one than before.
func (r *replica) renewed(ctx context.Context, before map[string]life) error {
	err := until(ctx, "all members to be made anew", func(ctx context.Context) error {
		now, err := r.lives(ctx)
		for name, l := range before {
			if now[name].uid == l.uid || now[name].uid == "" {
				err = errors.Join(err, fmt.Errorf("%s is the old one, or missing: %s", name, tellSet(r.set)), r.get(ctx))
			}
		}
		return err
	})
	return errors.Join(err, r.whole(ctx))
}

// toZeroAndBack stops the set, tries to come back with too few members, comes
// back with all, and is deleted and made again on the same data.
func toZeroAndBack(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "zero", 3)
	if err != nil {
		return err
	}
	if err := errors.Join(r.switchTo(ctx, "rss-zero-2"), r.resize(ctx, 0)); err != nil {
		return err
	}
	if err := r.stoppedInOrder("rss-zero-2"); err != nil {
		return err
	}
	if err := r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(2)) }); err != nil {
		return err
	}
	if err := r.says(ctx, v1alpha1.ConditionPaused, v1alpha1.ReasonReplicasTooLow); err != nil {
		return err
	}
	if lives, err := r.lives(ctx); err != nil || len(lives) > 0 {
		return errors.Join(err, fmt.Errorf("pods came back: %v", lives))
	}
	if err := errors.Join(r.resize(ctx, 3), r.goesOnWriting(ctx)); err != nil {
		return err
	}
	again := r.set.DeepCopy()
	if err := r.removed(ctx); err != nil {
		return err
	}
	r.set = &v1alpha1.ReplicatedStatefulSet{Spec: again.Spec}
	r.set.Namespace, r.set.Name = again.Namespace, again.Name
	if err := errors.Join(c.Client.Create(ctx, r.set), r.whole(ctx)); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

// stoppedInOrder asks the journals whether the primary was the last to be told to
// stop.
func (r *replica) stoppedInOrder(primary string) error {
	journals, err := ledgercheck.ReadJournals(r.journals())
	if err != nil {
		return err
	}
	last := record.Line{}
	for _, l := range journals.Lines {
		if l.What == record.Command && l.Text == "stop" && l.At > last.At {
			last = l
		}
	}
	if last.Pod != primary {
		return fmt.Errorf("%q was the last to be told to stop, and %s was primary", last.Pod, primary)
	}
	return nil
}

// says waits until a condition is true for that reason.
func (r *replica) says(ctx context.Context, condition, reason string) error {
	return until(ctx, condition+" to be true: "+reason, func(ctx context.Context) error {
		if err := r.get(ctx); err != nil {
			return err
		}
		found := meta.FindStatusCondition(r.set.Status.Conditions, condition)
		if found == nil || found.Status != "True" || found.Reason != reason {
			return errors.New(tellSet(r.set))
		}
		return nil
	})
}

// pendingForEver has a member that finds no node, and a primary that dies.
func pendingForEver(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "pending", 3)
	if err != nil {
		return err
	}
	// There are four nodes, and each takes one member only.
	if err := r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(5)) }); err != nil {
		return err
	}
	if err := r.onePending(ctx); err != nil {
		return err
	}
	old, err := r.pod(ctx, r.set.Status.Members.Primary[0])
	if err != nil {
		return err
	}
	if err := errors.Join(r.killServer(ctx, old), r.goesOnWriting(ctx), r.onePending(ctx), r.resize(ctx, 3)); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

// onePending waits until one of the two last members alone does not run, and there
// is a primary. Which of them finds the last node is the scheduler's to say.
func (r *replica) onePending(ctx context.Context) error {
	return until(ctx, "one member alone to be unready", func(ctx context.Context) error {
		err := r.get(ctx)
		m := r.set.Status.Members
		one := slices.Equal(m.Unready, []string{"rss-pending-3"}) || slices.Equal(m.Unready, []string{"rss-pending-4"})
		if err == nil && (!one || len(m.Primary) != 1 || len(m.Secondary) != len(m.Ready)-1) {
			err = errors.New(tellSet(r.set))
		}
		return err
	})
}

// pausedSet kills the primary's program while nothing may be done.
func pausedSet(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "paused", 3)
	if err != nil {
		return err
	}
	old, err := r.primary(ctx)
	if err != nil {
		return err
	}
	pause := func(paused bool) error {
		return r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Paused = paused })
	}
	if err := errors.Join(pause(true), r.says(ctx, v1alpha1.ConditionPaused, v1alpha1.ReasonPausedByUser)); err != nil {
		return err
	}
	if err := r.killServer(ctx, old); err != nil {
		return err
	}
	before, err := r.lastCommand(ctx)
	if err != nil {
		return err
	}
	var told error
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 3*time.Second, true, func(context.Context) (bool, error) {
		now, err := r.commands()
		if told = err; err == nil && now != before {
			told = fmt.Errorf("%d commands were run, and before the pause %d", now, before)
		}
		return told != nil, nil
	})
	if told != nil || !wait.Interrupted(err) {
		return errors.Join(told, err)
	}
	if err := r.keepsPodsOfOrphans(ctx); err != nil {
		return err
	}
	if err := errors.Join(pause(false), r.goesOnWriting(ctx)); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

// lastCommand waits until what was sent before a pause has arrived, and says how many
// commands that were.
func (r *replica) lastCommand(ctx context.Context) (int, error) {
	last := -1
	err := until(ctx, "the last command to have arrived", func(ctx context.Context) error {
		now, err := r.commands()
		if err == nil && now != last {
			last = now
			err = errors.Join(fmt.Errorf("%d were run", now), sleep(ctx, time.Second))
		}
		return err
	})
	return last, err
}

// keepsPodsOfOrphans deletes the StatefulSet alone: one that takes its place shall have
// as many pods, and these.
func (r *replica) keepsPodsOfOrphans(ctx context.Context) error {
	before, err := r.lives(ctx)
	if err != nil {
		return err
	}
	var old, now appsv1.StatefulSet
	key := client.ObjectKey{Namespace: r.Namespace, Name: "rss-" + r.set.Name}
	if err := r.Client.Get(ctx, key, &old); err != nil {
		return err
	}
	if err := r.Client.Delete(ctx, &old, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		return err
	}
	err = until(ctx, "another StatefulSet to have the pods", func(ctx context.Context) error {
		if err := r.Client.Get(ctx, key, &now); err != nil {
			return err
		}
		if now.UID == old.UID || int(now.Status.Replicas) != len(before) || now.Status.ObservedGeneration != now.Generation {
			return fmt.Errorf("%s has %d pods", now.UID, now.Status.Replicas)
		}
		return nil
	})
	return errors.Join(err, r.untouched(ctx, before, slices.Collect(maps.Keys(before))...))
}

// commands counts those that the members were told.
func (r *replica) commands() (n int, err error) {
	journals, err := ledgercheck.ReadJournals(r.journals())
	for _, l := range journals.Lines {
		if l.What == record.Command || l.What == record.Asked {
			n++
		}
	}
	return n, err
}

// lostPrimary cuts the primary's node off: nobody takes its place before it is
// back, or a person says that the machine is off.
func lostPrimary(ctx context.Context, c *Cluster) (err error) {
	r, err := c.ledger(ctx, "lost", 3)
	if err != nil {
		return err
	}
	old, err := r.primary(ctx)
	if err != nil {
		return err
	}
	if err := c.Nodes.Cut(old.Spec.NodeName); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Nodes.Heal(old.Spec.NodeName)) }()
	if err := r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonNodeUnreachable); err != nil {
		return err
	}
	if all, err := r.reigns(); err != nil || len(all) != 1 {
		return errors.Join(err, fmt.Errorf("%d were primary, and the first one may be still", len(all)))
	}
	if err := errors.Join(c.Nodes.Heal(old.Spec.NodeName), r.whole(ctx), r.goesOnWriting(ctx)); err != nil {
		return err
	}
	return r.poweredOff(ctx)
}

// poweredOff switches the primary's machine off, and says so: then another one
// takes its place.
func (r *replica) poweredOff(ctx context.Context) (err error) {
	old, err := r.primary(ctx)
	if err != nil {
		return err
	}
	node := old.Spec.NodeName
	if err := r.Nodes.StopNode(node); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.powerOn(context.WithoutCancel(ctx), []string{node})) }()
	if err := r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonNodeUnreachable); err != nil {
		return err
	}
	out := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	if err := change(ctx, r.Cluster, nodeNamed(node), func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, out) }); err != nil {
		return err
	}
	if err := r.succeeded(ctx, old.Name); err != nil {
		return err
	}
	if err := r.powerOn(ctx, []string{node}); err != nil {
		return err
	}
	if err := r.whole(ctx); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

// succeeded waits until another member than that is primary.
func (r *replica) succeeded(ctx context.Context, old string) error {
	return until(ctx, "another primary than "+old, func(ctx context.Context) error {
		err := r.get(ctx)
		if m := r.set.Status.Members.Primary; err == nil && (len(m) != 1 || m[0] == old) {
			err = errors.New(tellSet(r.set))
		}
		return err
	})
}

func nodeNamed(name string) *corev1.Node {
	n := &corev1.Node{}
	n.Name = name
	return n
}

// findsItself has two containers, of which the second one runs the commands.
func findsItself(ctx context.Context, c *Cluster) error {
	const secret = "passwords"
	r := &replica{Cluster: c, set: c.dummy("names")}
	pod := &r.set.Spec.Pod
	other := pod.Containers[0].DeepCopy()
	other.Name, pod.Container = "other", pod.Containers[0].Name
	pod.Containers = slices.Insert(pod.Containers, 0, *other)
	r.set.Spec.Secrets = []string{secret}
	err := c.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: c.Namespace}, StringData: map[string]string{"root": "hush"}})
	if err := errors.Join(err, c.Client.Create(ctx, r.set)); err != nil {
		return err
	}
	if err := r.whole(ctx); err != nil {
		return err
	}
	pods, err := r.pods(ctx)
	for _, p := range pods {
		for _, container := range p.Spec.Containers {
			want := fmt.Sprintf("names-svc %s %s hush app=\"names\" %t\n", p.Name, p.Namespace, container.Name == pod.Container)
			said, failed := c.exec(ctx, client.ObjectKeyFromObject(&p), container.Name, "/bin/sh", "-c",
				`echo $SERVICE_NAME $POD_NAME $POD_NAMESPACE $(cat /etc/rss/secrets/`+secret+`/root) $(grep '^app=' /etc/podinfo/labels) $(test -e /tmp/running && echo true || echo false)`)
			if failed == nil && said != want {
				failed = fmt.Errorf("container %s of %s says %q, and should say %q", container.Name, p.Name, said, want)
			}
			err = errors.Join(err, failed)
		}
	}
	return err
}
