package extended

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Upgrades that wait for a user's approval.

func byHand(s *v1alpha1.ExtendedStatefulSetSpec) { s.Approval = v1alpha1.ApprovalManual }

// approving approves a revision.
func approving(revision string) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { s.ApprovedRevision = revision }
}

// askedAboutCanaries makes the post-update job run for the canaries.
func askedAboutCanaries(script string) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PostUpdateJob = updateJob(s, "canary", script)
		s.UpdateStrategy.PostUpdateJob.When = v1alpha1.WhenCanary
	}
}

// awaitsApproval waits until good canaries of a version wait for approval.
func (x *fixture) awaitsApproval(ctx context.Context, version int64) {
	x.says(ctx, "that it waits for approval", func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing)
		return c != nil && c.Reason == v1alpha1.ReasonWaitingForApproval && s.UpdateVersion == version
	})
}

// approvals checks manual approval with both handovers. Only canaries exist until the revision is
// approved. A canary that breaks before the approval is rolled back. Going back to the old version
// needs no approval.
func approvals(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	apart := pods.Hold(claimsApart)
	for name, way := range handovers {
		x := newFixture(c, name, 2, way.shape, watchFor(time.Minute, kit.Patience), byHand, probed(beReady), askedAboutCanaries("exit 0"))
		x.create(ctx)
		good := x.set.Spec.DeepCopy()
		back := func(s *v1alpha1.ExtendedStatefulSetSpec) { s.Template = *good.Template.DeepCopy() }
		capacity := pods.Hold(least(name, way.budget))
		beyond := pods.Made(func(p *corev1.Pod) bool { return ofSet(p, name) && p.Labels[v1alpha1.LabelVersion] == "2" })
		c.During("handover "+name, func() {
			x.edit(ctx, inVersion("2"))
			x.awaitsApproval(ctx, 2)
			x.edit(ctx, approving(x.set.Status.CurrentRevision))
			x.awaitsApproval(ctx, 2)
			c.Expect(beyond()).To(HaveLen(1), "version 2 has more than its canary: %s", describe(x.set))
			x.edit(ctx, back)
			x.serves(ctx, 1)

			x.edit(ctx, inVersion("3"))
			x.awaitsApproval(ctx, 3)
			x.edit(ctx, approving(x.set.Status.UpdateRevision))
			x.serves(ctx, 3)
			x.Event(ctx, x.set, v1alpha1.EventApproved, "")
			c.Check(capacity.Kept())
		})
		c.During("a canary that fails in handover "+name, func() {
			x.edit(ctx, inVersion("4"))
			x.awaitsApproval(ctx, 4)
			for pod, p := range x.pods(ctx) {
				if p.Labels[v1alpha1.LabelVersion] == "4" {
					x.shell(ctx, pod, beSick)
				}
			}
			x.takenBack(ctx, v1alpha1.PhaseStale, 3)
		})
		c.During("a job that refuses the canaries in handover "+name, func() {
			x.edit(ctx, inVersion("5"), askedAboutCanaries("exit 1"))
			x.takenBack(ctx, v1alpha1.PhaseStale, 3)
			x.conditionSays(ctx, v1alpha1.ConditionAborted, "Job "+name+"-canary-v5-1 failed")
		})
	}
	c.Check(apart.Kept())
}
