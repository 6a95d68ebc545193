package statefulcluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// maxLost is how many entries status.lost keeps.
const maxLost = 10

// summarize says what a user sees of a world, a plan and what became of it.
func summarize(w *world, p *plan, outcomes []action.Outcome) v1alpha1.StatefulClusterStatus {
	s := *w.set.Status.DeepCopy()
	s.ObservedGeneration = w.set.Generation
	r := &roster{}
	if w.served() {
		r = muster(w, &plan{})
		count(w, r, &s)
		s.Updating = stillUpdating(onRecord(w, p, outcomes), outcomes)
		s.Creating = stillCreating(w, r, p, outcomes)
		s.Lost = lostNow(w, r, outcomes)
		s.Claims = claimsOnRecord(w, outcomes)
	} else if w.set.DeletionTimestamp == nil {
		countBlindly(w, &s)
	}
	for _, c := range []metav1.Condition{availableCondition(w, &s), progressingCondition(w, r, p, &s), degradedCondition(w, p, &s)} {
		c.ObservedGeneration = w.set.Generation
		c.LastTransitionTime = metav1.NewTime(w.now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

// countBlindly counts pods where the spec cannot say what they are to be.
func countBlindly(w *world, s *v1alpha1.StatefulClusterStatus) {
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0
	for _, m := range w.members {
		switch {
		case podstate.Terminating(m.pod):
			continue
		case podstate.Ready(m.pod):
			s.ReadyReplicas++
			s.AvailableReplicas++
		}
		s.Replicas++
	}
}

func count(w *world, r *roster, s *v1alpha1.StatefulClusterStatus) {
	s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.CurrentReplicas = int32(len(r.alive)), 0, 0, 0
	s.AvailableReplicas = int32(countAvailable(w, r.alive, &plan{}))
	s.UpdateRevision = r.target
	if s.CurrentRevision == "" {
		s.CurrentRevision = r.target
	}
	s.LostReplicas = int32(len(r.lost) + len(r.unsucceeded(w)))
	current := int32(0)
	for _, m := range r.alive {
		if podstate.Ready(m.pod) {
			s.ReadyReplicas++
		}
		if r.replacing(m) {
			s.LostReplicas++
		}
		if revisionOf(m.pod) == r.target && m.pod.Annotations[v1alpha1.AnnotationInPlace] == "" {
			s.UpdatedReplicas++
		}
		if revisionOf(m.pod) == s.CurrentRevision {
			current++
		}
	}
	s.CurrentReplicas = current
	// As in apps/v1: once all members have the update revision it is the current one.
	if s.UpdatedReplicas == int32(len(r.alive)) && len(r.alive) == int(*w.set.Spec.Replicas) && len(r.returning)+len(r.lost) == 0 {
		s.CurrentRevision, s.CurrentReplicas = r.target, s.UpdatedReplicas
	}
	if selector, err := metav1.LabelSelectorAsSelector(w.set.Spec.Selector); err == nil {
		s.Selector = selector.String()
	}
}

// onRecord are the entries that stand in status.updating after the pass: those
// of the plan, unless its step that writes them did not come to pass.
func onRecord(w *world, p *plan, outcomes []action.Outcome) []v1alpha1.UpdatingMember {
	if p.recorded && !slices.ContainsFunc(outcomes, wroteStatus) {
		return stillReturning(w)
	}
	return p.updating
}

// stillUpdating drops the entries whose new pod was created, at once: should a
// user delete that one, it is lost. And those whose delete the API server
// refused: somebody touched or deleted the pod first, so its end is not ours to
// undo.
func stillUpdating(entries []v1alpha1.UpdatingMember, outcomes []action.Outcome) []v1alpha1.UpdatingMember {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.UpdatingMember) bool {
		return slices.ContainsFunc(outcomes, func(o action.Outcome) bool {
			if o.Verb == action.Create && o.Reason == reasonReturned && o.Object.GetName() == e.Name {
				return o.Err == nil
			}
			return o.Verb == action.Delete && o.Object.GetUID() == e.UID &&
				(apierrors.IsNotFound(o.Err) || apierrors.IsConflict(o.Err))
		})
	})
}

func availableCondition(w *world, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	want := *w.set.Spec.Replicas
	message := fmt.Sprintf("%d of %d members are available", s.AvailableReplicas, want)
	if w.invalid != "" {
		return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonInvalidSpec, Message: "the spec cannot be served; see condition Degraded"}
	}
	if s.AvailableReplicas >= want {
		return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonAllAvailable, Message: message}
	}
	return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonMembersUnavailable, Message: message}
}

func progressingCondition(w *world, r *roster, p *plan, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	want := *w.set.Spec.Replicas
	toUpdate := want - s.UpdatedReplicas
	if !w.rolling() {
		toUpdate = 0
	}
	toUpdate -= w.rollingUpdate().Partition
	switch {
	case w.invalid != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "nothing is done until the spec is corrected"
	case s.LostReplicas > 0 || len(p.held) > 0:
		c.Reason, c.Message = v1alpha1.ReasonReplacing, "replacing "+members(s.LostReplicas)
	case slotsFilled(r, s) != wanted(w, r):
		c.Reason, c.Message = v1alpha1.ReasonScaling, fmt.Sprintf("the set has %s and should have %d", members(s.Replicas), want)+unready(w, r)
	case toUpdate > 0 || len(s.Updating) > 0:
		c.Reason, c.Message = v1alpha1.ReasonUpdating, fmt.Sprintf("%d of %d members have revision %s", s.UpdatedReplicas, want, s.UpdateRevision)+unready(w, r)+shaky(p)
	case s.AvailableReplicas < want:
		c.Reason, c.Message = v1alpha1.ReasonWaiting, fmt.Sprintf("waiting for %s to become available", members(want-s.AvailableReplicas))+unready(w, r)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonComplete, completeness(w, r, s)
	}
	return c
}

// slotsFilled is how many slots have a member, or one that is to come back. A pod
// that this pass deleted for an update, or created after one, is counted once.
func slotsFilled(r *roster, s *v1alpha1.StatefulClusterStatus) int {
	names := map[string]bool{}
	for _, m := range r.alive {
		names[m.name()] = true
	}
	for _, e := range slices.Concat(r.returning, s.Updating) {
		names[e.Name] = true
	}
	return len(names)
}

// unready names up to 3 members that are not Ready, first those that wait for a
// person, and for what; "" if all are Ready.
func unready(w *world, r *roster) string {
	var stuck, others []string
	said := meta.FindStatusCondition(w.set.Status.Conditions, v1alpha1.ConditionProgressing)
	for _, m := range r.alive {
		if podstate.Ready(m.pod) {
			continue
		}
		why := podstate.Hindrance(m.pod)
		// What crashes runs in between. It is said to crash until its pod is Ready
		// or the spec changes, or the message would come and go for ever.
		crashes := fmt.Sprintf("%s (%s)", m.name(), podstate.CrashLoop)
		if why == "" && said != nil && said.ObservedGeneration == w.set.Generation && strings.Contains(said.Message, crashes) {
			why = podstate.CrashLoop
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

// shaky names up to 3 members that the update waits for; "" if there are none.
func shaky(p *plan) string {
	if len(p.shaky) == 0 {
		return ""
	}
	return "; restarted since their update, which goes on when they stay Ready: " + atMost(3, p.shaky)
}

// completeness says what nothing is left to do means: members of another
// revision may stay.
func completeness(w *world, r *roster, s *v1alpha1.StatefulClusterStatus) string {
	want, old := *w.set.Spec.Replicas, int32(0)
	var revisions []string
	for _, m := range r.alive {
		if revisionOf(m.pod) != r.target {
			old++
			revisions = append(revisions, revisionOf(m.pod))
		}
	}
	slices.Sort(revisions)
	switch {
	case old == 0:
		return "all is as the spec wants it, with " + members(want)
	case !w.rolling():
		return fmt.Sprintf("%d of %d members have the new template; a member keeps its template until it is deleted (updateStrategy OnDelete)",
			s.UpdatedReplicas, want)
	}
	return fmt.Sprintf("%d of %d members have revision %s; rollingUpdate.partition keeps %s at revision %s",
		s.UpdatedReplicas, want, s.UpdateRevision, members(old), someOf(slices.Compact(revisions)))
}

// degradedCondition names the gravest thing that needs a person or is held back.
func degradedCondition(w *world, p *plan, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}
	expand, expandRefused := w.refused[reasonExpand]
	expandRefused = expandRefused && stands(expand, w, p)
	var refused []string
	for reason, r := range w.refused {
		if reason != reasonExpand && stands(r, w, p) {
			refused = append(refused, r.message)
		}
	}
	slices.Sort(refused)
	switch {
	case w.invalid != "":
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, w.invalid
	case len(p.held) > 0 && w.createsRefused(&plan{}) && len(refused) > 0:
		c.Reason, c.Message = v1alpha1.ReasonCreateFailing, fmt.Sprintf("%s; lost and waiting until it can be created: %s", refused[0], someOf(p.held))
	case len(p.held) > 0:
		c.Reason = v1alpha1.ReasonReplacementHeld
		c.Message = fmt.Sprintf("replacement.maxConcurrent lets %s be replaced at a time; lost and waiting for their turn: %s; raise it if all should be replaced at once",
			members(int32(w.maxConcurrent())), someOf(p.held))
	case len(p.crashing)+len(p.failing) > 0:
		c.Reason, c.Message = v1alpha1.ReasonRevisionFailing, failure(w, p)
	case len(refused) > 0:
		c.Reason, c.Message = v1alpha1.ReasonCreateFailing, refused[0]
	case expandRefused:
		c.Reason, c.Message = v1alpha1.ReasonClaimResize, expand.message
	case p.crowd > 0:
		c.Reason = v1alpha1.ReasonReplacementHeld
		c.Message = fmt.Sprintf("%d members are unready at once, more than replacement.maxConcurrent (%d), so none is replaced for unreadiness; look for a common cause", p.crowd, w.maxConcurrent())
	case len(p.down)+len(p.ignored) > 0:
		c.Reason, c.Message = v1alpha1.ReasonMembersNotReady, outage(w, p)
	case len(w.foreign) > 0:
		c.Reason = v1alpha1.ReasonForeignPods
		c.Message = fmt.Sprintf("pods that are not members carry the selector's labels and are left alone: %s; Services that select them send them traffic", someOf(w.foreign))
	case len(w.unrecorded()) > 0:
		c.Reason, c.Message = v1alpha1.ReasonUnrecordedClaims, keptUnrecorded(w)
	case w.budget != nil && !metav1.IsControlledBy(w.budget, w.set):
		c.Reason = v1alpha1.ReasonCreateFailing
		c.Message = fmt.Sprintf("a PodDisruptionBudget named %s exists and is not ours; it is left alone and none is made; rename it if the members should have one", w.budget.Name)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonHealthy, "nothing needs a person"
		if s.AvailableReplicas < *w.set.Spec.Replicas {
			c.Message = "nothing needs a person so far; condition Progressing says what is waited for"
		}
	}
	if len(c.Message) > 1024 {
		c.Message = strings.ToValidUTF8(c.Message[:1024], "")
	}
	return c
}

// failure says why members that should be replaced are not, and what to do:
// first of those that crash, then of those that do not start, then of those that
// find no node.
func failure(w *world, p *plan) string {
	var starting, homeless []string
	for _, m := range w.members {
		if !slices.Contains(p.failing, m.name()) || slices.Contains(p.crashing, m.name()) {
			continue
		}
		switch why := podstate.Hindrance(m.pod); why {
		case corev1.PodReasonUnschedulable:
			homeless = append(homeless, m.name())
		case "", podstate.CrashLoop:
			starting = append(starting, m.name())
		default:
			starting = append(starting, fmt.Sprintf("%s (%s)", m.name(), why))
		}
	}
	look := func(command, name string) string {
		return fmt.Sprintf("`kubectl -n %s %s %s`", w.set.Namespace, command, name)
	}
	var all []string
	if len(p.crashing) > 0 {
		all = append(all, fmt.Sprintf("containers of these members restart again and again, and no member with their template has been Ready for %d minutes, "+
			"so they are not replaced: %s; %s says why; correct the template",
			int(settlingTime.Minutes()), someOf(p.crashing), look("logs --previous", p.crashing[0])))
	}
	if len(starting) > 0 {
		first, _, _ := strings.Cut(starting[0], " ")
		all = append(all, fmt.Sprintf("these members do not become Ready, and are not replaced because new ones with the same template would fail the same way: "+
			"%s; %s says why; correct the template", someOf(starting), look("describe pod", first)))
	}
	if len(homeless) > 0 {
		all = append(all, fmt.Sprintf("no node can run these members, and they are not replaced because new ones would find none either: "+
			"%s; %s says what is missing, such as room, a node label, a StorageClass or a volume", someOf(homeless), look("describe pod", homeless[0])))
	}
	return strings.Join(all, "; ")
}

// outage says which members a person should look at, and how.
func outage(w *world, p *plan) string {
	look := func(name string) string {
		return fmt.Sprintf("`kubectl -n %s describe pod %s` says more", w.set.Namespace, name)
	}
	if len(p.down) > 0 {
		return fmt.Sprintf("no member is Ready, and these were: %s; look for a common cause; %s", someOf(p.down), look(p.down[0]))
	}
	return fmt.Sprintf("these members are not Ready for more than %d minutes, and spec.replacement says that they are never replaced for it: %s; %s",
		int(attentionTime.Minutes()), someOf(p.ignored), look(p.ignored[0]))
}

// stands tells whether a refusal still speaks of something that is wanted: once
// its time is over the plan would try again, and one that rests wants nothing.
func stands(r refusal, w *world, p *plan) bool { return r.until.After(w.now) || len(p.Steps) > 0 }

func namesOf(members []*member) []string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.name())
	}
	return names
}

// members is that number of them, in words for users.
func members(n int32) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// someOf names up to 10.
func someOf(names []string) string { return atMost(10, names) }

// atMost names the first n, and says how many more there are.
func atMost(n int, names []string) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
