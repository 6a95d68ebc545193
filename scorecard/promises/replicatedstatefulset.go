package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// ReplicatedStatefulSet lists the promises of this kind. Promises with ledgers also fail if an
// acknowledged entry is lost, or if the ledgers' journals show two primaries at the same time.
var ReplicatedStatefulSet = []Promise{
	{Name: "RS-32 RS-33 RS-42 the walk-through of the original", Site: OperatorSite, Run: walkThrough}, // it stops the operator for a while
	beside("W7 obstacles of a member are reported with the command that helps", replicatedReports),
	beside("RS-4 RS-61 containers get their names and Secrets, and one of them the commands", findsItself),
	scribed(ledgers("RS-34 a primary that fails is succeeded, and returns", failover)),
	core(ledgers("RS-36 after lights out the newest copy is started first", lightsOut)),
	long(scribed(ledgers("RS-33 RS-57 roles are handed over before a member is removed", handOvers))),
	ledgers("RS-96 RS-97 a changed Secret restarts all members in order, and a missing one restarts none", changedSecret),
	scribed(ledgers("RS-37 RS-38 RS-39 RS-46 stopped in order, and back from zero", toZeroAndBack)),
	ledgers("RS-40 a member that stays Pending does not block others", pendingForEver),
	scribed(ledgers("RS-45 RS-47 a paused set is not changed", pausedSet)),
	scribed(ledgers("V12 a demote and a stop without effect are not sent forever", idleCommands)),
	ledgers("RS-89 RS-90 a primary is parked and not changed", parkedPrimary),
	ledgers("RS-99 RS-110 resources change in place, or else a member is recreated", sizedMembers),
	ledgers("V13 an unresponsive primary does not count as serving", mutePrimary),
	ledgers("RS-32 RS-42 the original's manifest, and 7 to 2 to 7 members in a failover", originalManifest),
	ledgers("RS-14 if the newest cannot be seeded, no older one is seeded", newestCannotBeSeeded),
	long(ledgers("RS-33 RS-37 RS-46 RS-57 deliberate operations of users on Redis", redis)),
	core(Promise{Name: "RS-41 a primary on a lost node has no rival", Site: NodeSite, Faults: true, Run: lostPrimary}),
	{Name: "W9 W12 a failover waits for an unreachable member, and recreates it when that is allowed", Site: NodeSite, Faults: true, Run: unansweredSecondary},
	beside("W11 two of three members that are not Ready are reported, and may be evicted", unreadySecondaries),
	{Name: "RS-35 the majority is lost, and the others continue to run", Site: NodeSite, Faults: true, Run: majorityLost},
	core(ledgers("RS-80 RS-67 an eviction of the primary without a cordon loses no data", evictPrimary)),
	ledgers("RS-102 RS-103 an order in a manifest that is applied repeatedly is executed once", applyOrders),
	ledgers("RS-94 RS-95 a deleted pod of the primary loses no data if its preStop hook sleeps", deletePrimary),
	{Name: "RS-64 RS-67 a drain of the primary's node loses no data", Site: NodeSite, Faults: true, Run: drainPrimary},
	long(Promise{Name: "RS-64 RS-67 all nodes are drained in turn under load", Site: NodeSite, Faults: true, Run: drainAll}),
	core(Promise{Name: "RS-43 the operator is killed while a set is created, seeded, and paused", Site: OperatorSite, Faults: true, Run: operatorDiesInStates}),
	{Name: "RS-43 RS-56 no entry is lost over random faults", Site: NodeSite, Faults: true, Run: soakReplicated},
}

func ledgers(name string, keep func(context.Context, *Cluster)) Promise {
	return Promise{Name: name, Faults: true, Site: SharedSite, Run: keep}
}

// walkThrough follows the original's guide, with its commands.
func walkThrough(ctx context.Context, c *Cluster) {
	r := &replica{Cluster: c, set: c.dummy("example")}
	c.put(ctx, r.set)
	r.whole(ctx)
	m := r.set.Status.Members
	c.Expect(m.Primary).To(HaveLen(3), "all three should be primary: %s", tellSet(r.set))
	c.Expect(m.Primary).To(Equal(m.Ready), "all three should be primary: %s", tellSet(r.set))
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
	r.whileNoOperator(ctx, func() { r.anotherPod(ctx, r.deletePod(ctx, "rss-example-0")) })
	r.startedAgain(ctx, "rss-example-0")
	r.untouched(ctx, before, "rss-example-1", "rss-example-2")
}

// dummy returns the original's sample. Its scripts are inlined in the commands.
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

// life identifies a pod and its container, to check that a member was not changed.
type life struct {
	uid       types.UID
	container string
}

// pods returns all pods of the set, also those that are terminating.
func (r *replica) pods(ctx context.Context) []corev1.Pod {
	var pods corev1.PodList
	r.list(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelApp: r.set.Name})
	return pods.Items
}

func (r *replica) lives(ctx context.Context) map[string]life {
	pods := r.pods(ctx)
	lives := map[string]life{}
	for _, p := range pods {
		l := life{uid: p.UID}
		for _, s := range p.Status.ContainerStatuses {
			l.container += s.ContainerID
		}
		lives[p.Name] = l
	}
	return lives
}

func (r *replica) untouched(ctx context.Context, before map[string]life, names ...string) {
	now := r.lives(ctx)
	var err error
	for _, name := range names {
		if now[name] != before[name] {
			err = errors.Join(err, fmt.Errorf("%s is %v and was %v: it was changed without a reason", name, now[name], before[name]))
		}
	}
	r.check(err)
}

// resize sets the replicas, and waits until the members match.
func (r *replica) resize(ctx context.Context, size int32) {
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = &size })
	if size > 0 {
		r.whole(ctx)
	}
	r.until(ctx, fmt.Sprintf("%d pods", size), func(ctx context.Context) {
		lives := r.lives(ctx)
		r.Expect(len(lives)).To(Equal(int(size)), "there are %d: %s", len(lives), tellSet(r.set))
	})
}

// deletePod deletes a member with a grace period of one second, like kubectl delete --now.
func (r *replica) deletePod(ctx context.Context, name string) *corev1.Pod {
	pod := r.pod(ctx, name)
	r.remove(ctx, pod, client.GracePeriodSeconds(1))
	return pod
}

// anotherPod waits until a different pod with this name runs.
func (r *replica) anotherPod(ctx context.Context, old *corev1.Pod) {
	r.until(ctx, old.Name+" to be back", func(ctx context.Context) {
		pod := r.pod(ctx, old.Name)
		r.Expect(pod.UID).NotTo(Equal(old.UID), "pod %s is %s, and was %s", pod.UID, pod.Status.Phase, old.UID)
		r.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning), "pod %s is %s, and was %s", pod.UID, pod.Status.Phase, old.UID)
	})
}

// startedAgain waits until the program of a member runs and the set is whole.
func (r *replica) startedAgain(ctx context.Context, name string) {
	r.until(ctx, "the program of "+name+" to be started", func(ctx context.Context) {
		pod := r.pod(ctx, name)
		r.Expect(pod.Labels[v1alpha1.LabelActive]).To(Equal(v1alpha1.True), "labels %v", pod.Labels)
	})
	r.whole(ctx)
}

// replacedMember deletes a member and waits until it is recreated and started.
func (r *replica) replacedMember(ctx context.Context, name string) {
	r.anotherPod(ctx, r.deletePod(ctx, name))
	r.startedAgain(ctx, name)
}

// failover kills the primary's program, and then deletes the primary's pod.
func failover(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "failover", 3)
	for _, act := range []struct {
		what string
		do   func(*corev1.Pod)
	}{
		{"its process exits", func(p *corev1.Pod) { r.killServer(ctx, p) }},
		{"its pod is deleted", func(p *corev1.Pod) { r.remove(ctx, p) }},
		{"its pod is deleted by force", func(p *corev1.Pod) { r.remove(ctx, p, client.GracePeriodSeconds(0)) }},
	} {
		old := r.primary(ctx)
		at := testimony.Now()
		act.do(old)
		c.during("after "+act.what, func() {
			r.newPrimary(ctx, at)
			r.goesOnWriting(ctx)
			r.whole(ctx)
		})
	}
	report := r.judge(ctx)
	c.Expect(len(report.Reigns)).To(BeNumerically(">=", 4), "four members should have been primary: %s", report)
}

// newPrimary waits until a ledger reports that it became primary after that time.
func (r *replica) newPrimary(ctx context.Context, since int64) {
	r.until(ctx, "a new primary", func(context.Context) {
		all := r.reigns()
		r.Expect(all).NotTo(BeEmpty(), "the last of %d became it before", len(all))
		r.Expect(all[len(all)-1].Start).To(BeNumerically(">=", since), "the last of %d became it before", len(all))
	})
}

// lightsOut deletes all pods at once while member 0 does not have the newest copy, because
// replication to it lags.
func lightsOut(ctx context.Context, c *Cluster) {
	r := c.ledger(ctx, "lights", 3)
	r.switchTo(ctx, "rss-lights-2")
	// A majority suffices for an acknowledgement. Member 0 gets no more entries.
	r.turn("rss-lights-0/replicate", "hang")
	r.goesOnWriting(ctx)
	for range 2 {
		before := r.lives(ctx)
		r.removeAll(ctx)
		for name, l := range before {
			r.anotherPod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: l.uid}})
		}
		r.turn("rss-lights-0/replicate", "")
		r.whole(ctx)
		r.goesOnWriting(ctx)
	}
	r.judge(ctx)
}

// removeAll deletes all pods at once.
func (r *replica) removeAll(ctx context.Context) {
	r.check(r.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelApp: r.set.Name}))
}

// switchTo requests a switchover, and waits until it is done. While clients write, the new primary
// may lack the last entries when the old one is demoted. The switchover is then refused (event
// OverrideRefused) and requested again, as a user would do.
func (r *replica) switchTo(ctx context.Context, name string) {
	r.until(ctx, name+" to be primary", func(ctx context.Context) {
		r.read(ctx, r.set)
		now, told := r.set.Status.Members.Primary, fmt.Sprintf("annotations %v, %s", r.set.Annotations, tellSet(r.set))
		if asked := len(r.set.Annotations) > 0; asked || !slices.Equal(now, []string{name}) {
			if !asked && len(now) == 1 {
				r.ask(ctx, v1alpha1.AnnotationSwitchoverTo, name)
			}
			r.fail("%s", told)
		}
	})
}

// removed deletes the object, and waits until it and its pods are deleted.
func (r *replica) removed(ctx context.Context) {
	r.check(client.IgnoreNotFound(r.Client.Delete(ctx, r.set)))
	r.gone(ctx, r.set)
}
