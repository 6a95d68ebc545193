package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// problems are the problems that a set can have, sorted by severity. Each returns a reason and a
// message, or no message.
var problems = []func(*facts.Facts, *rules.Plan, Results) engine.Notice{
	invalidSpec, restoredClaims, noneReady, replacementRefused, replacementHeld, templateFails, writeRefused, writeUndone, updateRefused, claimNotGrown,
	drainBlocked, orphanedPods, manyUnready, membersNotReady, foreignPods, unrecordedClaims, budgetNotOurs,
}

// invalidSpec returns a notice if the spec is invalid.
func invalidSpec(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	return engine.Notice{Reason: v1alpha1.ReasonInvalidSpec, Message: f.Invalid}
}

// orphanedPods returns a notice that lists the orphans with the claims of members. Such a pod may be a
// member, or have only copied labels.
func orphanedPods(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	var names []string
	for _, pod := range f.Orphans {
		if f.OrphanIDs[f.IDOf(pod.Name)] {
			names = append(names, pod.Name)
		}
	}
	if len(names) == 0 || !f.Served() {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonOrphanedPods, Message: fmt.Sprintf(
		"pods have the labels of members but no owner. The operator cannot determine whether they were members, so it ignores them and creates no replacement for %s: %s; "+
			"if %s was a member: `kubectl -n %s patch pod %s --type=merge -p '%s'`; if not: `kubectl -n %s delete pod %s`",
		facts.MemberCount(int32(len(f.OrphanIDs))), facts.SomeOf(names), names[0], f.Set.Namespace, names[0], ownerPatch(f.Set), f.Set.Namespace, names[0])}
}

// ownerPatch returns the merge patch that makes a pod a member again.
func ownerPatch(set *v1alpha1.StatefulCluster) string {
	return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"%s","kind":"StatefulCluster","name":"%s","uid":"%s","controller":true,"blockOwnerDeletion":true}]}}`,
		v1alpha1.GroupVersion, set.Name, set.UID)
}

// drainBlocked returns a notice if members stay on cordoned Nodes and the operator cannot resolve
// it.
func drainBlocked(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	found := engine.Notice{Reason: v1alpha1.ReasonDrainBlocked}
	switch {
	case f.StayReason != "":
		if cordoned := cordonedMembers(f); len(cordoned) > 0 {
			found.Message = fmt.Sprintf("members stay on cordoned nodes and their evictions are refused: %s; %s", facts.SomeOf(cordoned), f.StayReason)
		}
	case len(f.Roomless) > 0 && len(f.Leaving) > 0:
		found.Message = fmt.Sprintf("new members are unschedulable, and these members cannot leave their cordoned nodes without them: %s; "+
			"`kubectl -n %s describe pod %s` shows what is missing; add capacity, or end the drain: `kubectl uncordon %s`",
			facts.SomeOf(facts.NamesOf(f.Leaving)), f.Set.Namespace, f.Roomless[0], strings.Join(nodesOf(f.Leaving, 3), " "))
	}
	return found
}

// cordonedMembers returns the names of the members on cordoned Nodes.
func cordonedMembers(f *facts.Facts) (names []string) {
	for _, m := range f.Alive {
		if m.Node.Cordoned {
			names = append(names, m.Name())
		}
	}
	return names
}

// firstUnready returns the first of the members that countUnready counts.
func firstUnready(f *facts.Facts) string {
	i := slices.IndexFunc(f.Alive, func(m *facts.Member) bool { return !m.Ready() && !m.OnBadNode() })
	return f.Alive[i].Name()
}

// noneReady returns a notice about members that count as lost and are kept because of an outage.
func noneReady(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	found := engine.Notice{Reason: v1alpha1.ReasonNoMemberReady}
	switch {
	case len(f.Kept) == 0:
	case f.ReadySince.IsZero():
		found.Message = fmt.Sprintf("no member is Ready, so no member is replaced and no claim is set aside; members that would be replaced: %s; restore their nodes, and they are recreated on their claims. "+
			"If their data is not needed: `kubectl -n %s patch stc %s --type=merge -p '{\"spec\":{\"replacement\":{\"whenNoneReady\":\"Replace\"}}}'`",
			facts.SomeOf(f.Kept), f.Set.Namespace, f.Set.Name)
	default:
		found.Message = fmt.Sprintf("no member was Ready until recently; members that are not Ready %d minutes after the first one became Ready will be replaced: %s",
			int(spec.OutageGrace.Minutes()), facts.SomeOf(f.Kept))
	}
	return found
}

// restoredClaims returns a notice if the user has not decided about claims that were restored with
// the set, or if pods prevent the use of claims given to it.
func restoredClaims(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	found := engine.Notice{Reason: v1alpha1.ReasonRestoredClaims}
	switch {
	case !f.Served():
	case f.Occupied() < f.Wanted() && facts.AwaitsDecision(f):
		found.Message = adviseOnRestored(f)
	case len(f.Offers.InTheWay) > 0:
		found.Message = podsInTheWay(f)
	}
	return found
}

// replacementRefused returns a notice if lost members wait because their successors are refused.
func replacementRefused(f *facts.Facts, p *rules.Plan, done Results) engine.Notice {
	refused := done.refusals(f, p)
	if len(p.Held) == 0 || len(refused) == 0 || !done.createsRefused(f.Now) {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonWriteRefused,
		Message: fmt.Sprintf("%s; lost members waiting for their replacements: %s", refused[0], facts.SomeOf(p.Held))}
}

// replacementHeld returns a notice if lost members wait because of maxConcurrent.
func replacementHeld(f *facts.Facts, p *rules.Plan, _ Results) engine.Notice {
	if len(p.Held) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonReplacementHeld,
		Message: fmt.Sprintf("replacement.maxConcurrent allows replacing %s at a time; lost members pending replacement: %s; raise it to replace all at once",
			facts.MemberCount(int32(f.MaxConcurrent())), facts.SomeOf(p.Held))}
}

// writeRefused returns a notice if the API server refuses a write.
func writeRefused(f *facts.Facts, p *rules.Plan, done Results) engine.Notice {
	refused := done.refusals(f, p)
	if len(refused) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonWriteRefused, Message: refused[0]}
}

// writeUndone returns a notice if an admission webhook or policy reverts a write.
func writeUndone(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	return engine.Notice{Reason: v1alpha1.ReasonWriteRefused, Message: f.Undone.Message()}
}

// updateRefused returns a notice if the API server would not create pods of the current template,
// so that no pod of an older one is deleted.
func updateRefused(f *facts.Facts, p *rules.Plan, done Results) engine.Notice {
	return done.notice(facts.ReasonTrial, v1alpha1.ReasonWriteRefused, "no pod is deleted for the update, because the API server would refuse the new pod; "+
		"correct the template or the cause of the refusal: ", f, p)
}

// claimNotGrown returns a notice if the API server refuses to expand claims.
func claimNotGrown(f *facts.Facts, p *rules.Plan, done Results) engine.Notice {
	return done.notice(facts.ReasonExpand, v1alpha1.ReasonClaimResizeRefused, "", f, p)
}

// manyUnready returns a notice if so many members are not Ready that none is replaced for it.
func manyUnready(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	if f.ManyUnready == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonReplacementHeld,
		Message: fmt.Sprintf("%d members are unready at the same time, more than replacement.maxConcurrent (%d), so unready members are not replaced; look for a common cause; `kubectl -n %s describe pod %s` shows one of them",
			f.ManyUnready, f.MaxConcurrent(), f.Set.Namespace, firstUnready(f))}
}

// membersNotReady returns a notice if members are not Ready and the operator does not replace them.
func membersNotReady(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	look := func(name string) string {
		return fmt.Sprintf("`kubectl -n %s describe pod %s` shows details", f.Set.Namespace, name)
	}
	found := engine.Notice{Reason: v1alpha1.ReasonMembersNotReady}
	if len(f.Down) > 0 {
		found.Message = fmt.Sprintf("no member is Ready; previously Ready: %s; look for a common cause; %s", facts.SomeOf(f.Down), look(f.Down[0]))
	} else if len(f.Ignored) > 0 {
		found.Message = fmt.Sprintf("members have not been Ready for more than %d minutes and are not replaced, because spec.replacement sets no deadline for this case: %s; %s",
			int(spec.AttentionTime.Minutes()), facts.SomeOf(f.Ignored), look(f.Ignored[0]))
	}
	return found
}

// foreignPods returns a notice about pods that are not members and to which Services may send
// traffic.
func foreignPods(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	if len(f.Foreign) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonForeignPods,
		Message: fmt.Sprintf("pods that are not members match the selector and are ignored: %s; Services that select them send them traffic; `kubectl -n %s get pod %s --show-labels` shows which labels to change",
			facts.SomeOf(f.Foreign), f.Set.Namespace, f.Foreign[0])}
}

// unrecordedClaims returns a notice about claims that the policy would have deleted and that are
// kept.
func unrecordedClaims(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	if len(f.Unrecorded()) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonUnrecordedClaims, Message: keptUnrecorded(f)}
}

// budgetNotOurs returns a notice if the set has no PodDisruptionBudget because another owner has
// its name.
func budgetNotOurs(f *facts.Facts, _ *rules.Plan, _ Results) engine.Notice {
	if !f.ForeignBudget() {
		return engine.Notice{}
	}
	if metav1.GetControllerOf(f.Budget) == nil && backup.Of(f.Budget) != "" {
		return engine.Notice{Reason: v1alpha1.ReasonWriteRefused,
			Message: fmt.Sprintf("PodDisruptionBudget %s was restored from a backup and has no owner, so none is created; delete it: kubectl -n %s delete pdb %s",
				f.Budget.Name, f.Set.Namespace, f.Budget.Name)}
	}
	return engine.Notice{Reason: v1alpha1.ReasonWriteRefused,
		Message: fmt.Sprintf("PodDisruptionBudget %s exists and belongs to another owner, so none is created; rename it if the members need one", f.Budget.Name)}
}

// templateFails returns why members that passed a deadline are not replaced, and what to do: first
// for those that crash, then for those that do not start, then for those that are unschedulable.
func templateFails(f *facts.Facts, p *rules.Plan, _ Results) engine.Notice {
	var starting, unschedulable, first []string
	for _, m := range f.Members {
		if !slices.Contains(p.Failing, m.Name()) || slices.Contains(f.Crashing, m.Name()) {
			continue
		}
		switch why := causes.Of(m.Pod).Word; why {
		case corev1.PodReasonUnschedulable:
			unschedulable = append(unschedulable, m.Name())
			continue
		case "", causes.CrashLoop:
			starting = append(starting, m.Name())
		default:
			starting = append(starting, fmt.Sprintf("%s (%s)", m.Name(), why))
		}
		first = append(first, m.Name())
	}
	look := func(command, name string) string {
		return fmt.Sprintf("`kubectl -n %s %s %s`", f.Set.Namespace, command, name)
	}
	var all []string
	if len(f.Crashing) > 0 {
		all = append(all, fmt.Sprintf("containers keep restarting, and no member with the same template has been Ready for %d minutes, "+
			"so these members are not replaced: %s; %s shows why; correct the template",
			int(spec.SettlingTime.Minutes()), facts.SomeOf(f.Crashing), look("logs --previous", f.Crashing[0])))
	}
	if len(starting) > 0 {
		all = append(all, fmt.Sprintf("members do not become Ready and are not replaced, because new members with the same template would fail in the same way: "+
			"%s; %s shows why; correct the template", facts.SomeOf(starting), look("describe pod", first[0])))
	}
	if len(unschedulable) > 0 {
		all = append(all, fmt.Sprintf("members are unschedulable and are not replaced, because new members would be unschedulable too: "+
			"%s; %s shows what is missing, such as capacity, a node label, a StorageClass or a volume", facts.SomeOf(unschedulable), look("describe pod", unschedulable[0])))
	}
	return engine.Notice{Reason: v1alpha1.ReasonRevisionFailing, Message: strings.Join(all, "; ")}
}
