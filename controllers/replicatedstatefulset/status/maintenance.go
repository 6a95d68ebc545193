package status

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// maintenance returns condition Maintenance, which lists the parked members, and how to end
// maintenance.
func maintenance(p *rules.Plan) metav1.Condition {
	f := p.On
	c := metav1.Condition{Type: v1alpha1.ConditionMaintenance, Status: metav1.ConditionTrue}
	if len(spec.Maintained(f.Set))+len(impossibleNames(f)) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNoMaintenance, "spec.maintenance is empty"
		return c
	}
	all := []facts.Notice{parkingUnderWay(f, p), parkedNotice(f), absentNotice(f), impossibleNotice(f)}
	var texts []string
	for _, found := range all {
		if found.Reason != "" {
			c.Reason = cmp.Or(c.Reason, found.Reason)
			texts = append(texts, found.Message)
		}
	}
	c.Message = strings.Join(texts, ". ") + fmt.Sprintf(
		". To end maintenance, remove members from the list, or all of them: kubectl -n %s patch rss %s --type=merge -p '{\"spec\":{\"maintenance\":null}}'",
		f.Set.Namespace, f.Set.Name)
	return c
}

// parkingUnderWay states what must happen before all listed members are parked. It is empty if all
// are.
func parkingUnderWay(f *facts.Facts, p *rules.Plan) facts.Notice {
	if m := rules.PrimaryToPark(f); m != nil {
		found := rules.WhyNotParked(f, m)
		text := fmt.Sprintf("%s is primary and will be parked when another member has its role: %s",
			m.Name(), cmp.Or(found.Message, p.Waiting.Message, "the handover is in progress"))
		if found.Reason == v1alpha1.ReasonNoSuccessor {
			text += fmt.Sprintf(". To work on it as primary, without failovers: kubectl -n %s patch rss %s --type=merge -p '{\"spec\":{\"paused\":true}}'",
				f.Set.Namespace, f.Set.Name)
		}
		return facts.Notice{Reason: cmp.Or(found.Reason, v1alpha1.ReasonHandingOver), Message: text}
	}
	for _, x := range f.Record.Maintenance {
		switch x.State {
		case v1alpha1.MaintenanceHandingOver:
			return facts.Notice{Reason: v1alpha1.ReasonHandingOver, Message: x.Pod + " will be parked when another member has its role"}
		case v1alpha1.MaintenanceWaiting:
			return facts.Notice{Reason: v1alpha1.ReasonWaitingForCommand, Message: x.Pod + " will be parked when its command has ended"}
		}
	}
	return facts.Notice{}
}

// parkedNotice lists the members on which a user can work.
func parkedNotice(f *facts.Facts) facts.Notice {
	parked := facts.ParkedMembers(f)
	if len(parked) == 0 {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonParked, Message: "parked: " + facts.NamesOf(parked) +
		"; they get no command except status and sequence, no clients, and no role"}
}

// absentNotice lists the members of spec.maintenance that do not exist now. They are parked when
// they appear.
func absentNotice(f *facts.Facts) facts.Notice {
	var names []string
	for _, name := range spec.Maintained(f.Set) {
		if f.Named(name) == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonNoSuchMember, Message: "without a pod, and parked when it is created: " + strings.Join(names, ", ")}
}

// impossibleNotice lists the names in spec.maintenance that no member of this set can have.
func impossibleNotice(f *facts.Facts) facts.Notice {
	names := impossibleNames(f)
	if len(names) == 0 {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonNoSuchMember, Message: fmt.Sprintf(
		"no member of this set can have the name %s; correct it", strings.Join(names, ", "))}
}

// impossibleNames returns the names in spec.maintenance that no member of the set can have.
func impossibleNames(f *facts.Facts) (names []string) {
	for _, name := range f.Set.Spec.Maintenance {
		if _, ok := spec.OrdinalOf(f.Set, name); !ok && !f.Deleting() {
			names = append(names, name)
		}
	}
	return names
}
