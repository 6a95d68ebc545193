package replicated

import (
	"context"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgerset"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// leaves removes a member from a set with a command leave, which fails at first. The scale-down is
// cancelled, and then repeated.
func leaves(ctx context.Context, c *kit.Cluster) {
	r := createLedger(ctx, c, "leaver", 4, func(s *v1alpha1.ReplicatedStatefulSetSpec) {
		s.Pod.Commands[v1alpha1.CommandLeave] = v1alpha1.Command{
			Command: []string{"/ledger", v1alpha1.CommandLeave}, Timeout: v1alpha1.Duration(ledgerset.Timeout.String())}
	})
	if r.primary(ctx).Name == "rss-leaver-3" {
		r.switchTo(ctx, "rss-leaver-0")
	}
	before, at := r.lives(ctx), testimony.Now()
	r.turn("rss-leaver-3/leave", "exit 1")
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(3)) })
	r.Until(ctx, "the failed command to be reported", func(ctx context.Context) {
		r.Read(ctx, r.set)
		degraded := meta.FindStatusCondition(r.set.Status.Conditions, v1alpha1.ConditionDegraded)
		r.Expect(degraded).To(HaveField("Message", ContainSubstring("rss-leaver-3 is not removed, because leave failed with exit code 1")), "%s", describe(r.set))
	})
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(4)) })
	r.whole(ctx)
	r.Expect(r.toldSince("rss-leaver-3", at)).To(Equal([]string{"stop", "secondary"}))

	r.turn("rss-leaver-3/leave", "")
	at = testimony.Now()
	r.resize(ctx, 3)
	r.Expect(r.toldSince("rss-leaver-3", at)).To(Equal([]string{"leave", "stop"}))
	r.Event(ctx, r.set, v1alpha1.EventMemberLeft, "rss-leaver-3")
	r.untouched(ctx, before, "rss-leaver-0", "rss-leaver-1", "rss-leaver-2")
	r.goesOnWriting(ctx)
	r.judge(ctx)
}
