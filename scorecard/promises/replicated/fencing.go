package replicated

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// leaseSeconds is the duration of the Leases in the promises.
const leaseSeconds = 15

// unknownEnd is the reason of a container that ended without power.
const unknownEnd = "Unknown"

// byLease is fencing by a Lease.
func byLease(set *v1alpha1.ReplicatedStatefulSet) {
	set.Spec.Fencing = &v1alpha1.FencingPolicy{Mode: v1alpha1.FencingLease, LeaseDurationSeconds: new(int32(leaseSeconds))}
}

// failsOver loses the node of PostgreSQL's primary in three ways, while a client writes. Each time a secondary takes over
// without manual intervention, after process 1 has ended the former primary.
func failsOver(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	a := postgreSQL(c)
	a.prepare = byLease
	d := a.create(ctx, c)
	d.grows(ctx)
	d.During("after the primary's node has lost the API server", func() {
		d.losesNode(ctx, func(node string) (heal func()) {
			c.Check(c.Nodes.BlockAPIServer(node))
			return func() { c.Check(c.Nodes.UnblockAPIServer(node)) }
		})
	})
	d.During("after the primary's node was cut off", func() {
		d.losesNode(ctx, func(node string) (heal func()) { return c.Cut(node) })
	})
	d.During("after the primary's node was powered off", func() {
		d.losesNode(ctx, func(node string) (heal func()) {
			c.Check(c.Nodes.StopNode(node))
			return func() { c.PowerOn(context.WithoutCancel(ctx), []string{node}) }
		})
	})
	d.judges(ctx)
	d.agree(ctx)
}

// losesNode loses the node of the primary. lose returns a function that brings it back.
func (d *database) losesNode(ctx context.Context, lose func(node string) (heal func())) {
	d.whole(ctx)
	d.primaryAlone(ctx)
	old := d.primary(ctx)
	container := old.Status.ContainerStatuses[0].ContainerID
	began := time.Now()
	heal := sync.OnceFunc(lose(old.Spec.NodeName))
	d.Cleanup(heal)
	d.succeeded(ctx, old.Name)
	granted := d.set.Status.Grants[0].Since
	d.Log("%s is primary %s after the node of %s was lost", d.set.Status.Members.Primary[0], granted.Sub(began).Round(100*time.Millisecond), old.Name)
	d.grows(ctx)
	d.Log("the client continues %s after that", time.Since(began).Round(time.Second))
	heal()
	d.Until(ctx, "the end of the former primary to be reported", func(ctx context.Context) {
		now := d.pod(ctx, old.Name)
		d.Expect(now.UID).To(Equal(old.UID), "it was recreated")
		i := slices.IndexFunc(now.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == d.container })
		s := &now.Status.ContainerStatuses[i]
		d.Expect(s.ContainerID).NotTo(Equal(container), "it runs")
		ended := s.LastTerminationState.Terminated
		d.Expect(ended).NotTo(BeNil(), "its end is unknown")
		d.Log("it ended with code %d at %s, and the next one was granted at %s", ended.ExitCode, ended.FinishedAt.Format(time.TimeOnly), granted.Format(time.TimeOnly))
		if ended.Reason != unknownEnd { // the container runtime reports when it started again
			d.Expect(ended.ContainerID).To(Equal(container))
			d.Expect(ended.ExitCode).To(BeEquivalentTo(125), "process 1 has not ended it")
			d.Expect(ended.FinishedAt.After(granted.Time)).To(BeFalse(), "it ended after the next one was granted")
		}
	})
	d.NodesReady(ctx)
	d.whole(ctx)
	d.Expect(d.set.Status.Members.Primary).NotTo(Equal([]string{old.Name}), "it is primary again")
}

// primaryAlone makes a member primary that is not on a node of the client, and not on that of the operator's leader.
func (d *database) primaryAlone(ctx context.Context) {
	busy := []string{d.pod(ctx, "client").Spec.NodeName, d.Leader(ctx).Spec.NodeName}
	for name := range d.lives(ctx) {
		if slices.Contains(busy, d.pod(ctx, name).Spec.NodeName) {
			continue
		}
		if !slices.Equal(d.set.Status.Members.Primary, []string{name}) {
			d.switchTo(ctx, name)
			d.whole(ctx)
		}
		return
	}
	d.Fail("all members are on the nodes %v", busy)
}

// withoutAPIServer stops the API server for much less than two thirds of the duration of the Leases, and for longer. The
// primary must continue, and then end. It starts again without manual intervention.
func withoutAPIServer(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	a := postgreSQL(c)
	duration := func(seconds int32) func(*v1alpha1.ReplicatedStatefulSet) {
		return func(set *v1alpha1.ReplicatedStatefulSet) {
			set.Spec.Fencing = &v1alpha1.FencingPolicy{Mode: v1alpha1.FencingLease, LeaseDurationSeconds: &seconds}
		}
	}
	a.prepare = duration(600)
	d := a.create(ctx, c)
	d.grows(ctx)
	before := d.lives(ctx)
	d.isAway(ctx, 10*time.Second)
	d.grows(ctx)
	d.untouched(ctx, before, slices.Collect(maps.Keys(before))...)
	d.edit(ctx, duration(leaseSeconds))
	d.renewed(ctx, before)
	old := d.primary(ctx)
	d.isAway(ctx, 2*leaseSeconds*time.Second)
	d.Until(ctx, "the end of the primary to be reported", func(ctx context.Context) {
		now := d.pod(ctx, old.Name)
		d.Expect(now.Status.ContainerStatuses[0].RestartCount).To(BeNumerically(">", 0))
		ended := now.Status.ContainerStatuses[0].LastTerminationState.Terminated
		d.Expect(ended).NotTo(BeNil(), "its end is unknown")
		d.Expect(ended.ExitCode).To(BeEquivalentTo(125), "process 1 has not ended it")
	})
	d.whole(ctx)
	d.grows(ctx)
	d.judges(ctx)
	d.agree(ctx)
}

// isAway stops the API server for some time.
func (d *database) isAway(ctx context.Context, length time.Duration) {
	began := time.Now()
	d.Check(d.Nodes.StopAPIServer())
	kit.Sleep(ctx, length)
	d.Check(d.Nodes.StartAPIServer())
	d.Log("the API server was away for %s", time.Since(began).Round(time.Second))
}

// switchesFencing changes the mode of fencing in both directions, while a client writes.
func switchesFencing(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	d := postgreSQL(c).create(ctx, c)
	leases := func() (names []string) {
		var all coordinationv1.LeaseList
		c.List(ctx, &all, client.InNamespace(d.Namespace), client.MatchingLabels{v1alpha1.LabelLease: d.set.Name})
		for _, l := range all.Items {
			names = append(names, l.Name)
		}
		return names
	}
	d.during(ctx, []act{
		{"fencing by a Lease", func(ctx context.Context) {
			before := d.lives(ctx)
			d.edit(ctx, byLease)
			d.renewed(ctx, before)
			c.Expect(leases()).To(HaveLen(3))
			c.Expect(d.set.Status.Grants[0].LeaseEpoch).To(BeNumerically(">", 0), "%s", describe(d.set))
		}},
		{"a switchover", func(ctx context.Context) { d.switchTo(ctx, d.set.Status.Members.Secondary[0]) }},
		{"fencing by proof", func(ctx context.Context) {
			d.whole(ctx)
			before := d.lives(ctx)
			d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Fencing = nil })
			d.renewed(ctx, before)
			c.Expect(d.set.Status.Grants[0].LeaseEpoch).To(BeZero(), "%s", describe(d.set))
			c.Until(ctx, "the Leases to be deleted", func(ctx context.Context) { c.Expect(leases()).To(BeEmpty()) })
		}},
	})
	d.judges(ctx)
	d.agree(ctx)
}
