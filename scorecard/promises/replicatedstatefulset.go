package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// ReplicatedStatefulSet are the promises of this kind. Those with ledgers fail
// also where an acknowledged entry is lost, or where two were primary at one
// instant, by the ledgers' own words.
var ReplicatedStatefulSet = []Promise{
	{Name: "RS-32 RS-33 RS-42 the walk-through of the original", Keep: walkThrough},
	beside("RS-4 RS-61 each container finds its names and Secrets, and one the commands", findsItself),
	scribed(ledgers("RS-34 a primary that dies is succeeded, and comes back", failover)),
	ledgers("RS-36 after lights out the newest copy is the first", lightsOut),
	scribed(ledgers("RS-33 RS-57 roles are handed over before a member goes", handOvers)),
	scribed(ledgers("RS-37 RS-38 RS-39 RS-46 stopped in order, and back from zero", toZeroAndBack)),
	ledgers("RS-40 a member that is Pending for ever holds up nobody", pendingForEver),
	scribed(ledgers("RS-45 RS-47 a paused set is left alone", pausedSet)),
	scribed(ledgers("V12 a demote and a stop that do nothing are not sent for ever", idleCommands)),
	ledgers("V13 a primary that does not answer is no service", mutePrimary),
	ledgers("RS-32 RS-42 the original's manifest, and 7 to 2 to 7 members in a failover", originalManifest),
	ledgers("RS-14 where the newest cannot be seeded, no older one is", newestCannotBeSeeded),
	long(ledgers("RS-33 RS-37 RS-46 RS-57 what people do to Redis on purpose", redis)),
	{Name: "RS-41 a primary on a lost node has no rival", Faults: true, Keep: lostPrimary},
	{Name: "RS-35 the majority is lost, and the rest runs on", Faults: true, Keep: majorityLost},
	{Name: "RS-43 the operator is killed while a set is created, seeded, and paused", Faults: true, Keep: operatorDiesInStates},
	{Name: "RS-43 RS-56 no entry is lost over faults by chance", Faults: true, Keep: soakReplicated},
}

func ledgers(name string, keep func(context.Context, *Cluster) error) Promise {
	return Promise{Name: name, Faults: true, Together: true, Keep: keep}
}

// walkThrough is what the original's own guide shows, with its commands.
func walkThrough(ctx context.Context, c *Cluster) error {
	r := &replica{Cluster: c, set: c.dummy("example")}
	if err := c.Client.Create(ctx, r.set); err != nil {
		return err
	}
	if err := r.whole(ctx); err != nil {
		return err
	}
	if m := r.set.Status.Members; len(m.Primary) != 3 || !slices.Equal(m.Primary, m.Ready) {
		return fmt.Errorf("all three should be primary: %s", tellSet(r.set))
	}
	before, err := r.lives(ctx)
	if err != nil {
		return err
	}
	for _, size := range []int32{5, 3} {
		if err := r.resize(ctx, size); err != nil {
			return err
		}
	}
	if err := r.untouched(ctx, before, "rss-example-0", "rss-example-1", "rss-example-2"); err != nil {
		return err
	}
	if err := r.replacedMember(ctx, "rss-example-0"); err != nil {
		return err
	}
	if err := r.untouched(ctx, before, "rss-example-1", "rss-example-2"); err != nil {
		return err
	}
	return r.withoutOperator(ctx, before)
}

// withoutOperator deletes a member while there is no operator.
func (r *replica) withoutOperator(ctx context.Context, before map[string]life) error {
	was, err := r.scaleOperator(ctx, 0)
	if err == nil {
		var old *corev1.Pod
		if old, err = r.deletePod(ctx, "rss-example-0"); err == nil {
			err = r.anotherPod(ctx, old)
		}
	}
	_, back := r.scaleOperator(context.WithoutCancel(ctx), was)
	if err := errors.Join(err, back, r.startedAgain(ctx, "rss-example-0")); err != nil {
		return err
	}
	return r.untouched(ctx, before, "rss-example-1", "rss-example-2")
}

// dummy is the original's sample, whose scripts are in the commands here.
func (c *Cluster) dummy(name string) *v1alpha1.ReplicatedStatefulSet {
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
				Containers: []corev1.Container{{Name: "dummy", Image: c.Image, Command: []string{"/bin/sh", "-c", "trap 'exit 0' TERM" + idle}}},
			},
		},
	}
}

// life is what tells that a member was left alone.
type life struct {
	uid       types.UID
	container string
}

// pods are all of the set, also those that go.
func (r *replica) pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelApp: r.set.Name})
	return pods.Items, err
}

func (r *replica) lives(ctx context.Context) (map[string]life, error) {
	pods, err := r.pods(ctx)
	if err != nil {
		return nil, err
	}
	lives := map[string]life{}
	for _, p := range pods {
		l := life{uid: p.UID}
		for _, s := range p.Status.ContainerStatuses {
			l.container += s.ContainerID
		}
		lives[p.Name] = l
	}
	return lives, nil
}

func (r *replica) untouched(ctx context.Context, before map[string]life, names ...string) error {
	now, err := r.lives(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if now[name] != before[name] {
			err = errors.Join(err, fmt.Errorf("%s is %v and was %v: nobody had a reason to touch it", name, now[name], before[name]))
		}
	}
	return err
}

// resize sets the replicas, and waits until the members fit.
func (r *replica) resize(ctx context.Context, size int32) error {
	if err := r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = &size }); err != nil {
		return err
	}
	if size > 0 {
		if err := r.whole(ctx); err != nil {
			return err
		}
	}
	return until(ctx, fmt.Sprintf("%d pods", size), func(ctx context.Context) error {
		lives, err := r.lives(ctx)
		if err == nil && len(lives) != int(size) {
			err = fmt.Errorf("there are %d: %s", len(lives), tellSet(r.set))
		}
		return err
	})
}

// deletePod deletes a member as --now does.
func (r *replica) deletePod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := r.pod(ctx, name)
	if err != nil {
		return nil, err
	}
	return pod, r.Client.Delete(ctx, pod, client.GracePeriodSeconds(1))
}

// anotherPod waits until another pod has the name.
func (r *replica) anotherPod(ctx context.Context, old *corev1.Pod) error {
	return until(ctx, old.Name+" to be back", func(ctx context.Context) error {
		pod, err := r.pod(ctx, old.Name)
		if err == nil && (pod.UID == old.UID || pod.Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("pod %s is %s, and was %s", pod.UID, pod.Status.Phase, old.UID)
		}
		return err
	})
}

// startedAgain waits until the program of a member runs and all is well.
func (r *replica) startedAgain(ctx context.Context, name string) error {
	err := until(ctx, "the program of "+name+" to be started", func(ctx context.Context) error {
		pod, err := r.pod(ctx, name)
		if err == nil && pod.Labels[v1alpha1.LabelActive] != v1alpha1.True {
			err = fmt.Errorf("labels %v", pod.Labels)
		}
		return err
	})
	return errors.Join(err, r.whole(ctx))
}

// replacedMember deletes a member and waits until it is back.
func (r *replica) replacedMember(ctx context.Context, name string) error {
	old, err := r.deletePod(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(r.anotherPod(ctx, old), r.startedAgain(ctx, name))
}

// failover kills the primary's program, and then deletes the primary's pod.
func failover(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "failover", 3)
	if err != nil {
		return err
	}
	for _, act := range []struct {
		what string
		do   func(*corev1.Pod) error
	}{
		{"the death of its process", func(p *corev1.Pod) error { return r.killServer(ctx, p) }},
		{"the deletion of its pod", func(p *corev1.Pod) error { return r.Client.Delete(ctx, p) }},
		{"the deletion of its pod by force", func(p *corev1.Pod) error { return r.Client.Delete(ctx, p, client.GracePeriodSeconds(0)) }},
	} {
		old, err := r.primary(ctx)
		if err != nil {
			return err
		}
		at := testimony.Now()
		if err := act.do(old); err != nil {
			return err
		}
		if err := r.newPrimary(ctx, at); err != nil {
			return fmt.Errorf("after %s: %w", act.what, err)
		}
		if err := errors.Join(r.goesOnWriting(ctx), r.whole(ctx)); err != nil {
			return fmt.Errorf("after %s: %w", act.what, err)
		}
	}
	report, err := r.judge(ctx)
	if err == nil && len(report.Reigns) < 4 {
		err = fmt.Errorf("four should have been primary: %s", report)
	}
	return err
}

// newPrimary waits until a ledger says that it became primary since then.
func (r *replica) newPrimary(ctx context.Context, since int64) error {
	return until(ctx, "a new primary", func(context.Context) error {
		all, err := r.reigns()
		if err == nil && (len(all) == 0 || all[len(all)-1].Start < since) {
			err = fmt.Errorf("the last of %d became it before", len(all))
		}
		return err
	})
}

// lightsOut deletes all pods at once, when the newest copy is not that of member
// 0: followers that lag are behind.
func lightsOut(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "lights", 3)
	if err != nil {
		return err
	}
	if err := r.switchTo(ctx, "rss-lights-2"); err != nil {
		return err
	}
	// A majority suffices for an acknowledgement: member 0 gets nothing more.
	if err := r.turn("rss-lights-0/replicate", "hang"); err != nil {
		return err
	}
	if err := r.goesOnWriting(ctx); err != nil {
		return err
	}
	for range 2 {
		before, err := r.lives(ctx)
		if err != nil {
			return err
		}
		if err := c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelApp: r.set.Name}); err != nil {
			return err
		}
		for name, l := range before {
			if err := r.anotherPod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: l.uid}}); err != nil {
				return err
			}
		}
		if err := errors.Join(r.turn("rss-lights-0/replicate", ""), r.whole(ctx), r.goesOnWriting(ctx)); err != nil {
			return err
		}
	}
	_, err = r.judge(ctx)
	return err
}

// switchTo asks for a primary, and waits until it is that one. As long as clients
// write, the heir may lack the last entries when the old one is demoted, and be
// refused (event OverrideRefused): then it is asked for again, as a person would.
func (r *replica) switchTo(ctx context.Context, name string) error {
	return until(ctx, name+" to be primary", func(ctx context.Context) error {
		err := r.get(ctx)
		if now := r.set.Status.Members; err == nil && (!slices.Equal(now.Primary, []string{name}) || len(r.set.Annotations) > 0) {
			err = fmt.Errorf("annotations %v, %s", r.set.Annotations, tellSet(r.set))
			if len(r.set.Annotations) == 0 && len(now.Primary) == 1 {
				err = errors.Join(err, r.ask(ctx, v1alpha1.AnnotationSwitchoverTo, name))
			}
		}
		return err
	})
}

// told waits until there is an event about the set whose note has these words.
func (r *replica) told(ctx context.Context, reason, words string) error {
	return until(ctx, "an event "+reason+": "+words, func(ctx context.Context) error { return r.tells(ctx, reason, words) })
}

// removed deletes the object, and waits until it and its pods are gone.
func (r *replica) removed(ctx context.Context) error {
	if err := r.Client.Delete(ctx, r.set); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return r.gone(ctx, r.set)
}
