package replicated

import (
	"context"
	"slices"

	. "github.com/onsi/gomega"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// parkedPrimary parks the primary while a client writes, for example for manual maintenance. The
// maintainer stops its program; meanwhile the next primary fails.
func parkedPrimary(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "parked", 3)
	first, before, at := r.primary(ctx).Name, r.lives(ctx), testimony.Now()
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Maintenance = []string{first} })
	r.says(ctx, v1alpha1.ConditionMaintenance, v1alpha1.ReasonParked)
	r.newPrimary(ctx, at)
	r.goesOnWriting(ctx)

	parked := testimony.Now()
	r.killServer(ctx, r.pod(ctx, first))
	r.Until(ctx, first+" to be seen stopped", func(ctx context.Context) {
		r.Read(ctx, r.set)
		r.Expect(slices.Contains(r.set.Status.Members.Secondary, first)).To(BeFalse(), "%s", describe(r.set))
	})
	at = testimony.Now()
	r.killServer(ctx, r.pod(ctx, r.set.Status.Members.Primary[0])) // a set with a parked member is not whole
	r.newPrimary(ctx, at)
	r.goesOnWriting(ctx)
	r.says(ctx, v1alpha1.ConditionReady, v1alpha1.ReasonOnTarget)
	r.Expect(r.toldSince(first, parked)).To(BeEmpty(), "%s was sent a command while it was parked", first)

	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Maintenance = nil })
	r.whole(ctx)
	// A spec beside this one may cordon the Node of the primary, and then first can be primary again.
	r.Expect(slices.Concat(r.set.Status.Members.Primary, r.set.Status.Members.Secondary)).To(ContainElement(first), "%s", describe(r.set))
	r.untouched(ctx, before, "rss-parked-0", "rss-parked-1", "rss-parked-2")
	r.judge(ctx)
}

// toldSince returns the commands that a member received after that time, by its journal.
func (r *replica) toldSince(pod string, since int64) (commands []string) {
	journals, err := ledgercheck.ReadJournals(r.journals())
	r.Check(err)
	for _, l := range journals.Lines {
		if l.What == record.Command && l.Pod == pod && l.At > since {
			commands = append(commands, l.Text)
		}
	}
	return commands
}
