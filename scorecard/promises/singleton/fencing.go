package singleton

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// beyondLease is longer than the default duration of a Lease.
const beyondLease = 20 * time.Second

// byLease is fencing by a Lease.
func byLease(s *v1.StatefulSingletonSpec) { s.Fencing = &v1.Fencing{Mode: v1.FencingLease} }

// lostByLease disconnects the node of a program. The agent ends the program, and the next one starts on another node
// without manual intervention. When the node is connected again, the first program does not start again.
func lostByLease(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	names := quietNodes(ctx, c)
	a := newApplication(c, "leased", kit.OnNodes(names[0], names[1]))
	a.hold(ctx, byLease)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	a.active(ctx, old)
	began := time.Now()
	heal := c.Cut(old.Node)
	next := a.one(ctx, old)
	c.Log("the next program started %s after the node had been cut off", time.Since(began).Round(100*time.Millisecond))
	c.Expect(next.Node).NotTo(Equal(old.Node), "the next program runs on the node that is cut off")
	a.active(ctx, next)
	heal()
	c.NodesReady(ctx)
	a.stays(next)
	a.handover(ctx, "a rollout", func(testimony.Run) { a.rollOut(ctx, d) })
}

// failedNodes powers off the node of a program, and disconnects the node of another one from the API server only. Each
// next program starts on another node without manual intervention. When the nodes are back, no program starts again.
func failedNodes(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	leader := c.Leader(ctx)
	names := slices.DeleteFunc(quietNodes(ctx, c), func(name string) bool { return name == leader.Spec.NodeName })
	c.Expect(len(names)).To(BeNumerically(">=", 3), "%d nodes are too few: two are lost, and one is not", len(names))
	off := onLostNode(ctx, c, "powered-off", names[0], names[2], byLease)
	deaf := onLostNode(ctx, c, "unreached", names[1], names[2], byLease)
	on := sync.OnceFunc(func() { c.PowerOn(context.WithoutCancel(ctx), []string{off.run.Node}) })
	c.Cleanup(on)
	began := testimony.Now()
	c.Check(c.Nodes.BlockAPIServer(deaf.run.Node))
	connect := sync.OnceFunc(func() { c.Check(c.Nodes.UnblockAPIServer(deaf.run.Node)) })
	c.Cleanup(connect)
	c.Check(c.Nodes.StopNode(off.run.Node))
	both := []*lostApplication{off, deaf}
	next := make([]testimony.Run, len(both))
	for i, l := range both {
		next[i] = l.one(ctx, l.run)
		l.logSince(began, "fault", l.run, next[i])
		l.active(ctx, next[i])
	}
	connect()
	on()
	for i, l := range both {
		l.comesBack(ctx)
		c.Throughout(ctx, 2*time.Second, func() { l.stays(next[i]) })
		c.Expect(l.runs()).To(HaveLen(2), "a program was started again: %s", kit.Story(l.runs()))
	}
}

// logSince logs when a program ended and the next one started.
func (a *application) logSince(began int64, what string, old, next testimony.Run) {
	since := func(at int64) time.Duration { return time.Duration(at - began).Round(10 * time.Millisecond) }
	for _, r := range a.runs() {
		if r.ID == old.ID {
			a.Log("%s: after the %s the program ended at %s, and the next one started at %s", a.Name, what, since(r.End), since(next.Start))
		}
	}
}

// comesBack waits until the kubelet has handled the old pod again: it is deleted, or its container waits.
func (l *lostApplication) comesBack(ctx context.Context) {
	l.Until(ctx, l.run.Pod+" to be deleted or to wait", func(ctx context.Context) {
		var pod corev1.Pod
		err := l.Client.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: l.run.Pod}, &pod)
		if apierrors.IsNotFound(err) {
			l.Log("%s was deleted", l.run.Pod)
			return
		}
		l.Check(err)
		restarted := slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
		l.Expect(restarted).To(BeTrue(), "its container has not restarted")
		l.Expect(witnessset.AtGate(&pod)).To(BeTrue(), "it does not wait")
		l.Log("%s waits again", l.run.Pod)
	})
}

// withoutKubelet stops the kubelet of a program. Its agent renews the Lease, so that no other program starts, also
// in a rollout. When the kubelet is back, it stops the program.
func withoutKubelet(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	names := quietNodes(ctx, c)
	a := newApplication(c, "kubeletless", kit.OnNodes(names[0], names[1]))
	a.hold(ctx, byLease)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	a.active(ctx, old)
	began := time.Now()
	c.Check(c.Nodes.StopKubelet(old.Node))
	start := sync.OnceFunc(func() { c.Check(c.Nodes.StartKubelet(old.Node)) })
	c.Cleanup(start)
	c.Until(ctx, old.Node+" to be not Ready", func(ctx context.Context) {
		node := kit.Node(old.Node)
		c.Read(ctx, node)
		c.Expect(slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionUnknown
		})).To(BeTrue(), "it is Ready")
	})
	c.Log("%s was not Ready %s after its kubelet had stopped", old.Node, time.Since(began).Round(time.Second))
	c.Throughout(ctx, beyondLease, func() { a.stays(old) })
	a.rollOut(ctx, d)
	a.successor(ctx, old)
	c.Throughout(ctx, beyondLease, func() { a.stays(old) })
	next := a.handover(ctx, "a rollout when the kubelet is back", func(testimony.Run) { start() })
	a.oldStopped(old)
	a.active(ctx, next)
	a.rolledOut(ctx, d)
	a.stays(next)
}

// lease reads the Lease of the application.
func (a *application) lease(ctx context.Context) *coordinationv1.Lease {
	var lease coordinationv1.Lease
	a.Check(a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name + ".singleton"}, &lease))
	return &lease
}

// successor waits until the pod of a run is terminating and the Lease names a successor, and returns the identity
// of that.
func (a *application) successor(ctx context.Context, old testimony.Run) (identity string) {
	a.Until(ctx, "the Lease to name a successor of "+old.Pod, func(ctx context.Context) {
		a.Expect(a.podOf(ctx, old).DeletionTimestamp).NotTo(BeNil(), "it is not deleted")
		identity = a.lease(ctx).Annotations[v1.AnnotationNext]
		a.Expect(identity).NotTo(BeEmpty(), "the Lease names none")
	})
	return identity
}

// frozenByNode freezes a program and its agent until the next program runs. When they continue, the agent ends the
// container. The overlap probe would report this promise, because a frozen program counts as running.
func frozenByNode(ctx context.Context, c *kit.Cluster) {
	frozen(ctx, c, "stopped", 0, func(a *application, old testimony.Run) func() { return c.Freeze(*a.podOf(ctx, old)) })
}

// pausedNode does the same with all processes of the node, for a minute.
func pausedNode(ctx context.Context, c *kit.Cluster) {
	leader := c.Leader(ctx).Spec.NodeName
	names := slices.DeleteFunc(quietNodes(ctx, c), func(name string) bool { return name == leader })
	frozen(ctx, c, "paused", time.Minute, func(_ *application, old testimony.Run) func() { return c.FreezeNode(old.Node) }, kit.OnNodes(names[0], names[1]))
	c.NodesReady(ctx)
}

// frozen freezes a program by a function for at least a duration, and until the next program runs.
func frozen(ctx context.Context, c *kit.Cluster, name string, length time.Duration, freeze func(*application, testimony.Run) (thaw func()), changes ...podChange) {
	c.PermitFencing(ctx)
	a := newApplication(c, name, append(changes, endsByFile, grace(3600))...) // neither SIGTERM nor the kubelet ends its programs
	c.Cleanup(a.end)
	a.hold(ctx, byLease)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	a.active(ctx, old)
	epoch := ptr.Deref(a.lease(ctx).Spec.LeaseTransitions, 0)
	began := testimony.Now()
	thaw := freeze(a, old)
	a.several(ctx, 2)
	next := a.living()[1]
	a.active(ctx, next)
	lease := a.lease(ctx)
	c.Expect(ptr.Deref(lease.Spec.LeaseTransitions, 0)).To(BeNumerically(">", epoch), "the epoch of the next program")
	c.Expect(ptr.Deref(lease.Spec.HolderIdentity, "")).To(Equal(next.Pod + "_" + next.UID))
	c.Log("the next program started %s after the freeze", time.Duration(next.Start-began).Round(10*time.Millisecond))
	kit.Sleep(ctx, length-time.Duration(testimony.Now()-began))
	thawed := testimony.Now()
	thaw()
	c.Expect(a.one(ctx, old).ID).To(Equal(next.ID))
	a.logSince(thawed, "thaw", old, next)
	c.Gone(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: old.Pod, Namespace: a.Namespace, UID: types.UID(old.UID)}})
	a.stays(next)
	a.rolledOut(ctx, d)
	runs := a.runs()
	c.Expect(runs).To(HaveLen(2), "a program was started again: %s", kit.Story(runs))
	c.Expect(runs[0].Stopped).To(BeFalse(), "the frozen program stopped itself")
}

// switched changes the mode of an object while its program runs. Each mode applies to the pods of the next rollout.
func switched(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	a := newApplication(c, "switched")
	a.hold(ctx)
	d := a.deploy(ctx, 1, surge())
	run := a.one(ctx)
	a.active(ctx, run)
	for _, mode := range []v1.FencingMode{v1.FencingLease, v1.FencingProof} {
		kit.Change(ctx, c, a.singleton(ctx), func(s *v1.StatefulSingleton) { s.Spec.Fencing = &v1.Fencing{Mode: mode} })
		c.Throughout(ctx, 5*time.Second, func() { a.stays(run) })
		run = a.handover(ctx, "a rollout with mode "+string(mode), func(testimony.Run) { a.rollOut(ctx, d) })
		a.active(ctx, run)
		a.rolledOut(ctx, d)
		byAgent := a.podOf(ctx, run).Spec.Containers[0].Command[0] == v1.AgentInPod
		c.Expect(byAgent).To(Equal(mode == v1.FencingLease), "mode %s: an agent runs the program: %t", mode, byAgent)
	}
	c.Until(ctx, "the Lease to be deleted", func(ctx context.Context) {
		var leases coordinationv1.LeaseList
		c.List(ctx, &leases, client.InNamespace(a.Namespace), client.HasLabels{v1.LabelSingleton})
		c.Expect(leases.Items).To(BeEmpty())
	})
	a.stays(run)
}

// withoutOperator removes the operator while a program stops whose successor is named. The agents renew the Lease,
// and hand it over.
func withoutOperator(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	a := newApplication(c, "unattended", endsByFile, grace(3600))
	c.Cleanup(a.end)
	a.hold(ctx, byLease)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	a.active(ctx, old)
	a.rollOut(ctx, d)
	named := a.successor(ctx, old)
	var next testimony.Run
	c.WhileNoOperator(ctx, func() {
		c.Throughout(ctx, 2*beyondLease, func() { a.stays(old) })
		next = a.handover(ctx, "the end of a program without the operator", func(testimony.Run) { a.end() })
		c.Expect(next.Pod + "_" + next.UID).To(Equal(named))
		c.Throughout(ctx, beyondLease, func() { a.stays(next) })
	})
	a.oldStopped(old)
	a.active(ctx, next)
	a.ready(ctx, next)
	a.rolledOut(ctx, d)
	a.stays(next)
}
