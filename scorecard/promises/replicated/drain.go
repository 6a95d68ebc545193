package replicated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// drainPrimary drains the node of a primary with asynchronous replication that lags one second,
// with and without a handover. Without a handover, the entries acknowledged in that second are
// lost.
func drainPrimary(ctx context.Context, c *kit.Cluster) {
	c.WriteInterval = 50 * time.Millisecond
	lost := 0
	for try := 1; lost == 0 && try <= 3; try++ { // the drain may happen at a moment when the others have all entries
		lost = lostByDrain(ctx, c, fmt.Sprint("allowed-", try), v1alpha1.EvictionAllow, (*replica).drainedOf)
	}
	if lost == 0 {
		c.Fail("evicting a primary without a handover lost no data: this shows nothing about a handover")
	}
	losesNothing(ctx, c, "handed", (*replica).drainedOf)
}

// evictPrimary evicts a primary whose replication lags one second. Like with a descheduler, no node
// is cordoned.
func evictPrimary(ctx context.Context, c *kit.Cluster) {
	c.WriteInterval = 50 * time.Millisecond
	losesNothing(ctx, c, "evicted", (*replica).evictedUntilGone)
}

// deletePrimary deletes the pod of a primary whose replication lags one second. Its preStop hook
// sleeps: without the hook, the entries acknowledged in that second are lost.
func deletePrimary(ctx context.Context, c *kit.Cluster) {
	c.WriteInterval = 50 * time.Millisecond
	losesNothing(ctx, c, "held", (*replica).deleted, sleepsFirst)
}

// sleepsFirst delays SIGTERM when a pod is deleted.
func sleepsFirst(s *v1alpha1.ReplicatedStatefulSetSpec) {
	s.Pod.TerminationGracePeriodSeconds = new(int64(30))
	s.Pod.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 15}}}
}

// deleted deletes a pod. Nothing refuses that, so it returns 0.
func (r *replica) deleted(ctx context.Context, pod *corev1.Pod) (refused int) {
	r.Remove(ctx, pod)
	return 0
}

// drainedOf drains the node of a primary, and keeps it cordoned until another member is primary.
func (r *replica) drainedOf(ctx context.Context, first *corev1.Pod) (refused int) {
	return r.drained(ctx, first.Spec.NodeName, func() { r.handedOver(ctx, first) })
}

// handedOver waits until another member is the primary.
func (r *replica) handedOver(ctx context.Context, first *corev1.Pod) {
	r.Until(ctx, "another primary", func(ctx context.Context) {
		r.Read(ctx, r.set)
		m := r.set.Status.Members.Primary
		r.Expect(m).To(HaveLen(1), "%s", describe(r.set))
		r.Expect(m[0]).NotTo(Equal(first.Name), "%s", describe(r.set))
	})
}

// leaving removes a primary, and returns how often its eviction was refused.
type leaving func(*replica, context.Context, *corev1.Pod) int

// losesNothing checks that no acknowledged entry is lost when a primary is removed in that way with
// eviction policy Handover.
func losesNothing(ctx context.Context, c *kit.Cluster, name string, leaves leaving, change ...func(*v1alpha1.ReplicatedStatefulSetSpec)) {
	if lost := lostByDrain(ctx, c, name, v1alpha1.EvictionHandover, leaves, change...); lost > 0 {
		c.Fail("%d acknowledged entries are lost", lost)
	}
}

// lostByDrain returns how many acknowledged entries are lost when the primary is removed in that
// way.
func lostByDrain(ctx context.Context, c *kit.Cluster, name string, policy v1alpha1.EvictionPolicy, leaves leaving, change ...func(*v1alpha1.ReplicatedStatefulSetSpec)) (lost int) {
	change = append(change, asynchronous, func(s *v1alpha1.ReplicatedStatefulSetSpec) { s.EvictionPolicy = policy })
	r := createLedger(ctx, c, name, 3, change...)
	r.turn("replicate", "lag 1s")
	r.acknowledged(ctx, r.acknowledged(ctx, 0)+40)
	first := r.primary(ctx)
	refused := leaves(r, ctx, first)
	r.handedOver(ctx, first)
	r.turn("replicate", "")
	r.whole(ctx)
	report, err := r.judgement(ctx)
	lost = lostOf(report)
	r.Log("evictionPolicy %s: %d of %d acknowledged entries lost, evictions refused %d times, pauses %v", policy, lost, report.Acked, refused, pausesOf(report))
	if lost == 0 { // otherwise each lost entry that a reader saw is one more fault
		r.Check(err)
	}
	r.removed(ctx)
	return lost
}

// asynchronous makes the ledger acknowledge entries that no other member has yet.
func asynchronous(s *v1alpha1.ReplicatedStatefulSetSpec) {
	env := &s.Pod.Containers[0].Env
	*env = append(*env, corev1.EnvVar{Name: "LEDGER_ACKS", Value: "0"})
}

func lostOf(report ledgercheck.Report) (lost int) {
	for _, fault := range report.Faults {
		if strings.HasPrefix(fault, "lost: ") || strings.HasPrefix(fault, "moved: ") {
			lost++
		}
	}
	return lost
}

func pausesOf(report ledgercheck.Report) []time.Duration {
	return partsOf(report, func(f ledgercheck.Failover) time.Duration { return f.Pause })
}

// partsOf returns one part of each pause, sorted.
func partsOf(report ledgercheck.Report, part func(ledgercheck.Failover) time.Duration) (parts []time.Duration) {
	for _, f := range report.Failovers {
		if f.Pause > 0 {
			parts = append(parts, part(f).Round(time.Millisecond))
		}
	}
	slices.Sort(parts)
	return parts
}

// drained drains a node of the members of the set, like kubectl drain: it cordons the node, evicts
// each member with retries, and waits until they are deleted. It then calls then, and uncordons the
// node. It returns how often an eviction was refused.
func (r *replica) drained(ctx context.Context, node string, then func()) (refused int) {
	defer r.Cordon(context.WithoutCancel(ctx), node, false)
	r.Cordon(ctx, node, true)
	for _, pod := range r.pods(ctx) {
		if pod.Spec.NodeName != node {
			continue
		}
		refused += r.evictedUntilGone(ctx, &pod)
	}
	then()
	return refused
}

// evictedUntilGone evicts a pod with retries, and waits until it is deleted. It returns how often
// that was refused, except for responses with Retry-After: the client retries those internally.
func (r *replica) evictedUntilGone(ctx context.Context, pod *corev1.Pod) (refused int) {
	r.Until(ctx, pod.Name+" to be evicted", func(ctx context.Context) {
		err := r.Evict(ctx, pod)
		if apierrors.IsTooManyRequests(err) {
			refused++
			r.Read(ctx, r.set)
			r.Fail("%v; %s", err, describe(r.set))
		}
		gone := apierrors.IsNotFound(err) || apierrors.IsConflict(err) // or another pod has this name
		if !gone {
			r.Check(err)
		}
	})
	r.Until(ctx, pod.Name+" to be gone", func(ctx context.Context) {
		var now corev1.Pod
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), &now)
		r.Expect(apierrors.IsNotFound(err) || (err == nil && now.UID != pod.UID)).To(BeTrue(), "it is still there: %v", err)
	})
	return refused
}

// drainAll drains all nodes one after another while a client writes. Nothing else happens.
func drainAll(ctx context.Context, c *kit.Cluster) {
	c.WriteInterval = 10 * time.Millisecond
	rounds := 2
	if long(c) {
		rounds = 34 // about a hundred drains of a primary's node
	}
	r := createLedger(ctx, c, "rounds", 3, asynchronous)
	drains, refused := 0, 0
	for range rounds {
		for _, member := range []string{"rss-rounds-0", "rss-rounds-1", "rss-rounds-2"} {
			pod := r.pod(ctx, member)
			if pod.Name == r.primary(ctx).Name {
				drains++
			}
			refused += r.drained(ctx, pod.Spec.NodeName, func() {})
			r.whole(ctx)
		}
	}
	report := r.judge(ctx)
	r.Log("%d nodes drained, %d of them of a primary: 0 of %d acknowledged entries lost, evictions refused %d times", 3*rounds, drains, report.Acked, refused)
	r.Log("without a write %s", quantiles(pausesOf(report)))
	r.Log("- until the old primary stopped %s", quantiles(partsOf(report, func(f ledgercheck.Failover) time.Duration { return f.Leaving })))
	r.Log("- until the next one served %s", quantiles(partsOf(report, func(f ledgercheck.Failover) time.Duration { return f.Vacant })))
	r.Log("- until a write reached it %s", quantiles(partsOf(report, func(f ledgercheck.Failover) time.Duration { return f.Finding })))
	r.Expect(drains).To(BeNumerically(">", 0), "no node of a primary was drained")
}

// quantiles formats p50, p99 and the max of sorted pauses.
func quantiles(pauses []time.Duration) string {
	if len(pauses) == 0 {
		return "never"
	}
	return fmt.Sprintf("p50 %s, p99 %s, at most %s", pauses[len(pauses)/2], pauses[len(pauses)*99/100], pauses[len(pauses)-1])
}
