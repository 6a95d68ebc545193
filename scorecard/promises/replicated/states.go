package replicated

import (
	"context"
	"slices"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// often sets a short interval, for tests in which the result of the status command matters.
func often(interval v1alpha1.Duration) func(*v1alpha1.ReplicatedStatefulSetSpec) {
	return func(s *v1alpha1.ReplicatedStatefulSetSpec) { s.ReconcileInterval = interval }
}

// idleCommands makes demote and then stop exit with 0 without any effect.
func idleCommands(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "idle", 3, often("2s"))
	old := r.primary(ctx)
	heir := r.set.Status.Members.Secondary[0]
	r.turn(old.Name+"/demote", "exit 0")
	// New entries may cause an earlier refusal of the order: it is then retried.
	c.Until(ctx, "the order to be refused for demote", func(ctx context.Context) {
		told := len(r.Events(ctx, r.set, v1alpha1.EventOverrideRefused, "demote of "+old.Name+" failed: it exited with 0")) > 0
		if r.Read(ctx, r.set); !told && len(r.set.Annotations) == 0 {
			r.ask(ctx, v1alpha1.AnnotationSwitchoverTo, heir)
		}
		c.Expect(told).To(BeTrue(), "there is no such event")
	})
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersFailed)
	r.turn(old.Name+"/demote", "")
	last := "rss-idle-2"
	r.turn(last+"/stop", "exit 0")
	r.turn(last+"/demote", "exit 0")
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(2)) })
	r.Event(ctx, r.set, v1alpha1.EventMemberFailed, "stop of "+last+" failed: it exited with 0")
	r.Event(ctx, r.set, v1alpha1.EventMemberReplaced, "starts or stops failed")
	r.turn(last+"/stop", "")
	r.turn(last+"/demote", "")
	r.resize(ctx, 2)
	r.judge(ctx)
}

// mutePrimary makes the primary's status command hang, like that of a frozen server.
func mutePrimary(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "mute", 3, often("5s"))
	old := r.primary(ctx)
	before := r.lives(ctx)
	r.turn(old.Name+"/status", "hang")
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersDegraded)
	r.isUnavailable(ctx)
	r.turn(old.Name+"/status", "")
	r.whole(ctx)
	r.untouched(ctx, before, old.Name)
	r.judge(ctx)
}

func (r *replica) isUnavailable(ctx context.Context) {
	r.Until(ctx, "Available to be false: NotServing", func(ctx context.Context) {
		r.Read(ctx, r.set)
		c := meta.FindStatusCondition(r.set.Status.Conditions, v1alpha1.ConditionAvailable)
		r.Expect(c).NotTo(BeNil(), "%s", describe(r.set))
		r.Expect(c.Status).To(Equal(metav1.ConditionFalse), "%s", describe(r.set))
		r.Expect(c.Reason).To(Equal(v1alpha1.ReasonNotServing), "%s", describe(r.set))
	})
}

// newestCannotBeSeeded deletes all pods while member 0 is behind, and makes the seed of the others
// fail: member 0 could be seeded, but must not be.
func newestCannotBeSeeded(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "unseeded", 3)
	r.switchTo(ctx, "rss-unseeded-2")
	r.turn("rss-unseeded-0/replicate", "hang")
	r.goesOnWriting(ctx)
	others := []string{"rss-unseeded-1", "rss-unseeded-2"}
	for _, name := range others {
		r.turn(name+"/seed", "exit 1")
	}
	at := testimony.Now()
	r.removeAll(ctx)
	r.Event(ctx, r.set, v1alpha1.EventMemberFailed, "seed of rss-unseeded-")
	r.Event(ctx, r.set, v1alpha1.EventMemberReplaced, "starts or stops failed")
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersFailed)
	all := r.reigns()
	late := slices.DeleteFunc(all, func(r ledgercheck.Reign) bool { return r.Start <= at })
	c.Expect(late).To(BeEmpty(), "a member became primary, although those with the newest copy could not be seeded")
	for _, name := range others {
		r.turn(name+"/seed", "")
	}
	r.turn("rss-unseeded-0/replicate", "")
	r.whole(ctx)
	r.judge(ctx)
}

// majorityLost disconnects the nodes of both secondaries: only the primary is left, and they join
// again.
func majorityLost(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "majority", 3)
	old := r.primary(ctx)
	before := r.lives(ctx)
	var nodes []string
	for _, name := range r.set.Status.Members.Secondary {
		nodes = append(nodes, r.pod(ctx, name).Spec.NodeName)
	}
	heal := c.Cut(nodes...)
	c.Until(ctx, "both secondaries to be unready", func(ctx context.Context) {
		r.Read(ctx, r.set)
		m := r.set.Status.Members
		c.Expect(m.Unready).To(HaveLen(2), "%s", describe(r.set))
		c.Expect(m.Primary).To(Equal([]string{old.Name}), "%s", describe(r.set))
	})
	r.untouched(ctx, before, old.Name)
	heal()
	r.whole(ctx)
	r.goesOnWriting(ctx)
	r.untouched(ctx, before, old.Name)
	report := r.judge(ctx)
	c.Expect(len(report.Reigns)).To(Equal(1), "no member should have taken over: %s", report)
}

// operatorDiesInStates kills all processes of the operator in states from which the original's
// operator could not recover.
func operatorDiesInStates(ctx context.Context, c *kit.Cluster) {
	r := newLedger(c, "states", 3)
	r.turn("seed", "lag 5s")
	c.Put(ctx, r.set)
	reaches := func(what string, is func(*v1alpha1.ReplicatedStatefulSetStatus) bool) {
		c.Until(ctx, what, func(ctx context.Context) {
			r.Read(ctx, r.set)
			c.Expect(is(&r.set.Status)).To(BeTrue(), "%s", describe(r.set))
		})
	}
	reaches("phase Creating", func(s *v1alpha1.ReplicatedStatefulSetStatus) bool { return s.Phase == v1alpha1.PhaseCreating })
	c.KillOperators(ctx)
	seeding := func(s *v1alpha1.ReplicatedStatefulSetStatus) bool {
		return len(s.Commands) > 0 && s.Commands[0].Name == v1alpha1.CommandSeed && len(s.Members.Primary) == 0
	}
	reaches("a seed in progress", seeding)
	c.KillOperators(ctx)
	r.turn("seed", "")
	r.whole(ctx)
	r.writes(ctx)
	old := r.primary(ctx)
	pause := func(paused bool, interval v1alpha1.Duration) {
		r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Paused, s.Spec.ReconcileInterval = paused, interval })
	}
	pause(true, "20s")
	r.says(ctx, v1alpha1.ConditionPaused, v1alpha1.ReasonPausedByUser)
	c.KillOperators(ctx)
	r.killServer(ctx, old)
	told := r.lastCommand(ctx)
	pause(true, "10s")
	reaches("a new operator to have reconciled", func(s *v1alpha1.ReplicatedStatefulSetStatus) bool { return s.ObservedGeneration == r.set.Generation })
	now := r.commands()
	c.Expect(now).To(Equal(told), "%d commands were run in a paused set, and %d before", now, told)
	pause(false, "10s")
	r.whole(ctx)
	r.goesOnWriting(ctx)
	report := r.judge(ctx)
	c.Expect(len(report.Reigns)).To(Equal(2), "two should have been primary, one before the pause and one after: %s", report)
}
