package statefulcluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// maxLost is the max number of entries in status.lost.
const maxLost = 10

// results are the results of the steps of a plan.
type results struct {
	outcomes []action.Outcome
	// refused are the writes that the API server refuses, by the reason of the action.
	refused map[string]refusal
}

// effective returns the actions with that verb that took effect.
func (r results) effective(verb action.Verb) (done []action.Outcome) {
	for _, o := range r.outcomes {
		if o.Verb == verb && o.Err == nil {
			done = append(done, o)
		}
	}
	return done
}

// wroteStatus reports whether a step that writes the status succeeded.
func (r results) wroteStatus() bool { return slices.ContainsFunc(r.outcomes, wroteStatus) }

// deleted reports whether this pass deleted the object with that UID.
func (r results) deleted(uid types.UID) bool {
	return slices.ContainsFunc(r.effective(action.Delete), func(o action.Outcome) bool { return o.Object.GetUID() == uid })
}

// createdClaims returns the claims that this pass created.
func (r results) createdClaims() (claims []metav1.Object) {
	for _, o := range r.effective(action.Create) {
		if _, isClaim := o.Object.(*corev1.PersistentVolumeClaim); isClaim && o.Answer != nil {
			claims = append(claims, o.Answer)
		}
	}
	return claims
}

// summarize returns the status for the facts, the plan and its results.
func summarize(f *facts, p *plan, done results) v1alpha1.StatefulClusterStatus {
	s := *f.set.Status.DeepCopy()
	s.ObservedGeneration = f.set.Generation
	if f.served() {
		count(f, &s)
		s.Updating = stillUpdating(updatingOnRecord(f, p, done), done)
		s.Creating = stillCreating(f, p, done)
		s.Lost = lossesListed(f, p, done)
		s.Claims = claimsOnRecord(f, done)
	} else if f.set.DeletionTimestamp == nil {
		countBlindly(f.world, &s)
	}
	for _, c := range withKstatus(f, []metav1.Condition{availableCondition(f, &s), progressingCondition(f, p, &s), degradedCondition(f, p, done, &s)}) {
		c.ObservedGeneration = f.set.Generation
		c.LastTransitionTime = metav1.NewTime(f.now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

// countBlindly counts the pods of a set whose spec is invalid.
func countBlindly(w *world, s *v1alpha1.StatefulClusterStatus) {
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0
	for _, m := range w.members {
		if m.terminating() {
			continue
		}
		s.Replicas++
		if m.ready() {
			s.ReadyReplicas++
			s.AvailableReplicas++
		}
	}
}

func count(f *facts, s *v1alpha1.StatefulClusterStatus) {
	s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.CurrentReplicas = int32(len(f.alive)), 0, 0, 0
	available, _ := f.countAvailable()
	s.AvailableReplicas = int32(available)
	s.UpdateRevision = f.spec.Name
	if s.CurrentRevision == "" {
		s.CurrentRevision = f.spec.Name
	}
	s.LostReplicas = int32(len(f.lost) + len(f.unsucceeded()))
	for _, m := range f.alive {
		if m.ready() {
			s.ReadyReplicas++
		}
		if m.stillReplacing() {
			s.LostReplicas++
		}
		if m.revision() == f.spec.Name && !m.patching() {
			s.UpdatedReplicas++
		}
		if m.revision() == s.CurrentRevision {
			s.CurrentReplicas++
		}
	}
	// As in apps/v1: once all members have the update revision, it is the current one.
	complete := len(f.alive) == f.replicas() && len(f.returning)+len(f.lost) == 0
	if complete && int(s.UpdatedReplicas) == len(f.alive) {
		s.CurrentRevision, s.CurrentReplicas = f.spec.Name, s.UpdatedReplicas
	}
	if selector, err := metav1.LabelSelectorAsSelector(f.set.Spec.Selector); err == nil {
		s.Selector = selector.String()
	}
}

// updatingOnRecord returns the entries of status.updating after the pass: those of the plan, unless
// the step that writes them failed.
func updatingOnRecord(f *facts, p *plan, done results) []v1alpha1.UpdatingMember {
	if p.recorded && !done.wroteStatus() {
		return stillReturning(f.world)
	}
	return p.updating
}

// stillUpdating drops the entries whose new pod was created, at once, so that the member is lost if
// a user deletes that pod. It also drops the entries whose pod deletion failed with NotFound or
// Conflict: others changed or deleted the pod first, so the operator does not undo it.
func stillUpdating(entries []v1alpha1.UpdatingMember, done results) []v1alpha1.UpdatingMember {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.UpdatingMember) bool {
		return slices.ContainsFunc(done.outcomes, func(o action.Outcome) bool { return endsEntry(o, e) })
	})
}

// endsEntry reports whether the result of an action removes an entry of status.updating.
func endsEntry(o action.Outcome, e v1alpha1.UpdatingMember) bool {
	switch {
	case o.Verb == action.Create && o.Reason == reasonReturned && o.Object.GetName() == e.Name:
		return o.Err == nil
	case o.Verb == action.Delete && o.Object.GetUID() == e.UID:
		return apierrors.IsNotFound(o.Err) || apierrors.IsConflict(o.Err)
	}
	return false
}

func availableCondition(f *facts, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	want := int32(f.replicas())
	message := fmt.Sprintf("%d of %d members are available", s.AvailableReplicas, want)
	if f.invalid != "" {
		return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonInvalidSpec, Message: "the spec is invalid; see condition Degraded"}
	}
	if s.AvailableReplicas >= want {
		return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonAllAvailable, Message: message}
	}
	return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonMembersUnavailable, Message: message}
}

func progressingCondition(f *facts, p *plan, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	want := int32(f.replicas())
	toUpdate := want - s.UpdatedReplicas
	if !f.rolling() {
		toUpdate = 0
	}
	toUpdate -= int32(f.partition())
	switch {
	case f.invalid != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "no action is taken until the spec is corrected"
	case s.LostReplicas > 0 || len(p.held) > 0:
		c.Reason, c.Message = v1alpha1.ReasonReplacing, "replacing "+members(s.LostReplicas)
	case len(f.leaving) > 0 && toUpdate <= 0 && len(s.Updating) == 0:
		c.Reason, c.Message = v1alpha1.ReasonDraining, drainingMessage(f)
	case slotsFilled(f, s) != f.wanted():
		c.Reason, c.Message = v1alpha1.ReasonScaling, fmt.Sprintf("the set has %s and should have %d", members(s.Replicas), want)+unready(f)
	case toUpdate > 0 || len(s.Updating) > 0:
		c.Reason, c.Message = v1alpha1.ReasonUpdating, fmt.Sprintf("%d of %d members have revision %s", s.UpdatedReplicas, want, s.UpdateRevision)+unready(f)+unsettled(f)
	case s.AvailableReplicas < want:
		c.Reason, c.Message = v1alpha1.ReasonWaiting, fmt.Sprintf("waiting for %s to become available", members(want-s.AvailableReplicas))+unready(f)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonComplete, completeness(f, s)
	}
	return c
}

// slotsFilled returns the number of slots that have a member or a returning one. A pod that this
// pass deleted for an update, or recreated after one, is counted once.
func slotsFilled(f *facts, s *v1alpha1.StatefulClusterStatus) int {
	names := map[string]bool{}
	for _, m := range f.alive {
		names[m.name()] = true
	}
	for _, e := range slices.Concat(f.returning, s.Updating) {
		names[e.Name] = true
	}
	return len(names)
}

// unready returns a text that names up to 3 members that are not Ready and why, first those that
// need an action by the user; "" if all are Ready.
func unready(f *facts) string {
	var stuck, others []string
	for _, m := range f.alive {
		if m.ready() {
			continue
		}
		cause := causes.Of(m.pod)
		why := cause.Word
		if cause.RunsUnready() {
			why = cause.String()
		}
		// A crashing container runs between two crashes. It is reported as crashing until its pod
		// is Ready or the spec changes, since otherwise the message would keep changing.
		if why == "" && f.crashed[m.pod.UID] {
			why = causes.CrashLoop
		}
		if why == "" {
			others = append(others, m.name())
		} else {
			stuck = append(stuck, fmt.Sprintf("%s (%s)", m.name(), why))
		}
	}
	if len(stuck)+len(others) == 0 {
		return ""
	}
	return "; not Ready: " + atMost(3, append(stuck, others...))
}

// unsettled returns a text that names up to 3 members that the update waits for; "" if there are
// none.
func unsettled(f *facts) string {
	if len(f.unsettled) == 0 {
		return ""
	}
	return "; waiting until members that restarted since their update stay Ready: " + atMost(3, f.unsettled)
}

// completeness returns the message of a set with no operation in progress. Members of other
// revisions may remain.
func completeness(f *facts, s *v1alpha1.StatefulClusterStatus) string {
	want, old := int32(f.replicas()), f.notAt(f.spec)
	switch {
	case len(old) == 0:
		return "no operation in progress; the set has " + members(want)
	case !f.rolling():
		return fmt.Sprintf("%d of %d members have the new template; a member keeps its template until it is deleted (updateStrategy OnDelete)",
			s.UpdatedReplicas, want)
	}
	revisions := make([]string, 0, len(old))
	for _, m := range old {
		revisions = append(revisions, m.revision())
	}
	slices.Sort(revisions)
	return fmt.Sprintf("%d of %d members have revision %s; rollingUpdate.partition keeps %s at revision %s",
		s.UpdatedReplicas, want, s.UpdateRevision, members(int32(len(old))), someOf(slices.Compact(revisions)))
}

// degradedCondition returns condition Degraded with the most severe problem, and the reasons why
// members do not run.
func degradedCondition(f *facts, p *plan, done results, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	c := withCauses(f, gravest(f, p, done, s))
	c.Message = excerpt.Of(c.Message, maxMessage)
	return c
}

func gravest(f *facts, p *plan, done results, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	for _, find := range problems {
		if found := find(f, p, done); found.Message != "" {
			return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: found.Reason, Message: found.Message}
		}
	}
	message := "no problems detected"
	if int(s.AvailableReplicas) < f.replicas() {
		message = "no problems detected so far; see condition Progressing"
	}
	return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHealthy, Message: message + departedMessage(f) + asideMessage(f)}
}

// maxMessage bounds the message of a condition.
const maxMessage = 1024

// problems are the problems that a set can have, sorted by severity. Each returns a reason and a
// message, or no message.
var problems = []func(*facts, *plan, results) engine.Notice{
	invalidSpec, restoredClaims, noneReady, replacementRefused, replacementHeld, templateFails, writeRefused, writeUndone, updateRefused, claimNotGrown,
	drainBlocked, orphanedPods, manyUnready, outage, foreignPods, unrecordedClaims, budgetNotOurs,
}

func invalidSpec(f *facts, _ *plan, _ results) engine.Notice {
	return engine.Notice{Reason: v1alpha1.ReasonInvalidSpec, Message: f.invalid}
}

// restoredClaims returns a notice if the user has not decided about claims that were restored with
// the set, or if pods prevent the use of claims given to it.
func restoredClaims(f *facts, _ *plan, _ results) engine.Notice {
	found := engine.Notice{Reason: v1alpha1.ReasonRestoredClaims}
	switch {
	case !f.served():
	case f.occupied() < f.wanted() && awaitsWord(f):
		found.Message = adviseOnRestored(f)
	case len(f.offers.inTheWay) > 0:
		found.Message = podsInTheWay(f)
	}
	return found
}

// replacementRefused returns a notice if lost members wait because their successors are refused.
func replacementRefused(f *facts, p *plan, done results) engine.Notice {
	refused := done.refusals(f, p)
	if len(p.held) == 0 || len(refused) == 0 || !done.createsRefused(f.now) {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonCreateFailing,
		Message: fmt.Sprintf("%s; lost members waiting for their replacements: %s", refused[0], someOf(p.held))}
}

// replacementHeld returns a notice if lost members wait because of maxConcurrent.
func replacementHeld(f *facts, p *plan, _ results) engine.Notice {
	if len(p.held) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonReplacementHeld,
		Message: fmt.Sprintf("replacement.maxConcurrent allows replacing %s at a time; lost members pending replacement: %s; raise it to replace all at once",
			members(int32(f.maxConcurrent())), someOf(p.held))}
}

// writeRefused returns a notice if the API server refuses a write.
func writeRefused(f *facts, p *plan, done results) engine.Notice {
	refused := done.refusals(f, p)
	if len(refused) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonCreateFailing, Message: refused[0]}
}

// writeUndone returns a notice if an admission webhook or policy reverts a write.
func writeUndone(f *facts, _ *plan, _ results) engine.Notice {
	return engine.Notice{Reason: v1alpha1.ReasonCreateFailing, Message: f.undone.Message()}
}

// updateRefused returns a notice if the API server would not create pods of the current template,
// so that no pod of an older one is deleted.
func updateRefused(f *facts, p *plan, done results) engine.Notice {
	return done.notice(reasonTrial, v1alpha1.ReasonCreateFailing, "no pod is deleted for the update, because the API server would refuse the new pod; "+
		"correct the template or the cause of the refusal: ", f, p)
}

// claimNotGrown returns a notice if the API server refuses to expand claims.
func claimNotGrown(f *facts, p *plan, done results) engine.Notice {
	return done.notice(reasonExpand, v1alpha1.ReasonClaimResize, "", f, p)
}

// notice returns a notice about the refusal of an action, with words before the message. It is
// empty if no wanted write is refused.
func (r results) notice(of, reason, words string, f *facts, p *plan) engine.Notice {
	refusal, refused := r.refused[of]
	if !refused || !stands(refusal, f.world, p) {
		return engine.Notice{}
	}
	return engine.Notice{Reason: reason, Message: words + advised(f, of, refusal.message)}
}

// manyUnready returns a notice if so many members are not Ready that none is replaced for it.
func manyUnready(f *facts, _ *plan, _ results) engine.Notice {
	if f.manyUnready == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonReplacementHeld,
		Message: fmt.Sprintf("%d members are unready at the same time, more than replacement.maxConcurrent (%d), so unready members are not replaced; look for a common cause; `kubectl -n %s describe pod %s` shows one of them",
			f.manyUnready, f.maxConcurrent(), f.set.Namespace, f.firstUnready())}
}

// outage returns a notice if members are not Ready and the operator cannot resolve it.
func outage(f *facts, _ *plan, _ results) engine.Notice {
	look := func(name string) string {
		return fmt.Sprintf("`kubectl -n %s describe pod %s` shows details", f.set.Namespace, name)
	}
	found := engine.Notice{Reason: v1alpha1.ReasonMembersNotReady}
	if len(f.down) > 0 {
		found.Message = fmt.Sprintf("no member is Ready; previously Ready: %s; look for a common cause; %s", someOf(f.down), look(f.down[0]))
	} else if len(f.ignored) > 0 {
		found.Message = fmt.Sprintf("members have not been Ready for more than %d minutes and are not replaced, because spec.replacement sets no deadline for this case: %s; %s",
			int(attentionTime.Minutes()), someOf(f.ignored), look(f.ignored[0]))
	}
	return found
}

// foreignPods returns a notice about pods that are not members and to which Services may send
// traffic.
func foreignPods(f *facts, _ *plan, _ results) engine.Notice {
	if len(f.foreign) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonForeignPods,
		Message: fmt.Sprintf("pods that are not members match the selector and are ignored: %s; Services that select them send them traffic; `kubectl -n %s get pod %s --show-labels` shows which labels to change",
			someOf(f.foreign), f.set.Namespace, f.foreign[0])}
}

// unrecordedClaims returns a notice about claims that the policy would have deleted and that are
// kept.
func unrecordedClaims(f *facts, _ *plan, _ results) engine.Notice {
	if len(f.unrecorded()) == 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1alpha1.ReasonUnrecordedClaims, Message: keptUnrecorded(f)}
}

// budgetNotOurs returns a notice if the set has no PodDisruptionBudget because another owner has
// its name.
func budgetNotOurs(f *facts, _ *plan, _ results) engine.Notice {
	if !f.foreignBudget() {
		return engine.Notice{}
	}
	if metav1.GetControllerOf(f.budget) == nil && backup.Of(f.budget) != "" {
		return engine.Notice{Reason: v1alpha1.ReasonCreateFailing,
			Message: fmt.Sprintf("PodDisruptionBudget %s was restored from a backup and has no owner, so none is created; delete it: kubectl -n %s delete pdb %s",
				f.budget.Name, f.set.Namespace, f.budget.Name)}
	}
	return engine.Notice{Reason: v1alpha1.ReasonCreateFailing,
		Message: fmt.Sprintf("PodDisruptionBudget %s exists and belongs to another owner, so none is created; rename it if the members need one", f.budget.Name)}
}

// templateFails returns why members that passed a deadline are not replaced, and what to do: first
// for those that crash, then for those that do not start, then for those that are unschedulable.
func templateFails(f *facts, p *plan, _ results) engine.Notice {
	var starting, unschedulable, first []string
	for _, m := range f.members {
		if !slices.Contains(p.failing, m.name()) || slices.Contains(f.crashing, m.name()) {
			continue
		}
		switch why := causes.Of(m.pod).Word; why {
		case corev1.PodReasonUnschedulable:
			unschedulable = append(unschedulable, m.name())
			continue
		case "", causes.CrashLoop:
			starting = append(starting, m.name())
		default:
			starting = append(starting, fmt.Sprintf("%s (%s)", m.name(), why))
		}
		first = append(first, m.name())
	}
	look := func(command, name string) string {
		return fmt.Sprintf("`kubectl -n %s %s %s`", f.set.Namespace, command, name)
	}
	var all []string
	if len(f.crashing) > 0 {
		all = append(all, fmt.Sprintf("containers keep restarting, and no member with the same template has been Ready for %d minutes, "+
			"so these members are not replaced: %s; %s shows why; correct the template",
			int(settlingTime.Minutes()), someOf(f.crashing), look("logs --previous", f.crashing[0])))
	}
	if len(starting) > 0 {
		all = append(all, fmt.Sprintf("members do not become Ready and are not replaced, because new members with the same template would fail in the same way: "+
			"%s; %s shows why; correct the template", someOf(starting), look("describe pod", first[0])))
	}
	if len(unschedulable) > 0 {
		all = append(all, fmt.Sprintf("members are unschedulable and are not replaced, because new members would be unschedulable too: "+
			"%s; %s shows what is missing, such as capacity, a node label, a StorageClass or a volume", someOf(unschedulable), look("describe pod", unschedulable[0])))
	}
	return engine.Notice{Reason: v1alpha1.ReasonRevisionFailing, Message: strings.Join(all, "; ")}
}

// ownNotice are the reasons of the actions whose refusal has a separate notice.
var ownNotice = []string{reasonExpand, reasonTrial}

// refusals returns the messages of all other refused writes that are still wanted.
func (r results) refusals(f *facts, p *plan) (messages []string) {
	for reason, refused := range r.refused {
		if !slices.Contains(ownNotice, reason) && stands(refused, f.world, p) {
			messages = append(messages, advised(f, reason, refused.message))
		}
	}
	slices.Sort(messages)
	return messages
}

// createsRefused reports whether new members are refused.
func (r results) createsRefused(now time.Time) bool {
	return slices.ContainsFunc(createReasons, func(reason string) bool { return r.refused[reason].until.After(now) })
}

// stands reports whether a refused write is still wanted. After the retry time, a plan that still
// wants it would have steps.
func stands(r refusal, w *world, p *plan) bool { return !w.reached(r.until) || len(p.Steps) > 0 }

func namesOf(members []*member) []string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.name())
	}
	return names
}

// members returns a number of members as text for users.
func members(n int32) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// someOf returns up to 10 names as text.
func someOf(names []string) string { return atMost(10, names) }

// atMost returns the first n names as text, and the number of the others.
func atMost(n int, names []string) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
