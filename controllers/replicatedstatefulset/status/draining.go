package status

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// draining returns condition Draining, which reports the primary that should leave its Node.
func draining(p *rules.Plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDraining, Status: metav1.ConditionTrue}
	f := p.On
	m := rules.PrimaryToDrain(f)
	if m == nil {
		return drainingNoPrimary(f, c)
	}
	found := rules.WhyNotDrained(f, m)
	c.Reason = cmp.Or(found.Reason, v1alpha1.ReasonHandingOver)
	who := fmt.Sprintf("%s is primary and its eviction was requested", m.Name())
	if m.Node.Cordoned {
		who = fmt.Sprintf("%s is primary on Node %s, which is cordoned", m.Name(), m.Pod.Spec.NodeName)
	}
	why := cmp.Or(found.Message, p.Waiting.Message, "the handover is in progress")
	if rules.EvictionTimeIsOver(f) {
		c.Reason = v1alpha1.ReasonEvictionAllowed
		c.Message = fmt.Sprintf("%s; it may be evicted, because spec.evictionTimeout has expired: %s", who, why)
		return c
	}
	c.Message = fmt.Sprintf("%s; it is not evicted until another member has its role: %s", who, why)
	if found.Reason == v1alpha1.ReasonNoSuccessor {
		c.Message += fmt.Sprintf(". To evict it anyway, and lose data that no other member has: kubectl -n %s patch rss %s --type=merge -p '{\"spec\":{\"evictionPolicy\":\"Allow\"}}'",
			f.Set.Namespace, f.Set.Name)
	}
	return c
}

// drainingNoPrimary returns condition Draining if no primary should leave its Node. While a primary
// is missing, or the commands of a handover have not ended, no member may be evicted.
func drainingNoPrimary(f *facts.Facts, c metav1.Condition) metav1.Condition {
	toLeave := f.Among(func(m *facts.Member) bool { return m.ShouldLeaveNode && !m.Terminating() })
	if len(toLeave) == 0 || !rules.UsesBudgets(f) || !rules.LacksPrimary(f) {
		// The time does not count for spec.evictionTimeout, so a primary that should leave later
		// has the full timeout.
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotDraining, "no primary that can be handed over is on a cordoned Node"
		if len(toLeave) > 0 && rules.BudgetIsClosed(f) && len(f.Record.Commands) > 0 {
			c.Reason = v1alpha1.ReasonWaitingForCommand
			c.Message += fmt.Sprintf(". No member is evicted until all commands have ended; missing: %s. Members that should leave their Nodes: %s", f.WhatIsMissing(), facts.NamesOf(toLeave))
		}
		return c
	}
	c.Reason = v1alpha1.ReasonPrimaryMissing
	c.Message = fmt.Sprintf("%d of %d primaries run, and no member is evicted until all of them run; see Progressing and Degraded. "+
		"Members that should leave their Nodes: %s. To evict one anyway: kubectl -n %s delete pod <pod>",
		rules.CountLabelled(f), f.WantedPrimaries(), facts.NamesOf(toLeave), f.Set.Namespace)
	if rules.EvictionTimeIsOver(f) {
		c.Reason = v1alpha1.ReasonEvictionAllowed
		c.Message = "members that should leave their Nodes may be evicted although a primary is missing, because spec.evictionTimeout has expired: " + facts.NamesOf(toLeave)
	}
	return c
}
