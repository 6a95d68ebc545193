package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// summarize says what the operator sees. Times of conditions that did not change
// stay as they are.
func summarize(w *world, p *plan) v1alpha1.ReplicatedStatefulSetStatus {
	s := w.set.Status.DeepCopy()
	w.books.into(s)
	s.ObservedGeneration = w.set.Generation
	s.ControlPaused = w.set.Spec.Paused
	s.Selector, s.ServiceName = labels.SelectorFromSet(ownLabels(w.set)).String(), serviceName(w.set)
	s.Members = membersOf(w)
	s.Replicas, s.ReadyReplicas = int32(len(s.Members.Ready)), 0
	for _, m := range w.members {
		if role := w.shown(m); (role == primary || role == secondary) && w.unserved(m) == "" && slices.Contains(s.Members.Ready, m.name()) {
			s.ReadyReplicas++
		}
	}
	s.Primaries, s.PrimariesWanted = int32(len(s.Members.Primary)), int32(w.target())
	if n := int32(w.wanted()); n > 0 && s.Replicas == n && len(w.members) == int(n) {
		s.RestoreReplicas = n
	}
	s.Unanswered = nil
	for _, m := range w.among(w.unanswered) {
		s.Unanswered = append(s.Unanswered, v1alpha1.Unanswered{Pod: m.name(), ContainerID: m.running(), Since: metav1.NewTime(m.askedAt.Truncate(time.Second))})
	}
	for _, c := range []metav1.Condition{available(w, s), progressing(w, p), degraded(w), seeded(w, p), dataLossRisk(p), paused(w)} {
		c.ObservedGeneration, c.LastTransitionTime, c.Message = w.set.Generation, metav1.NewTime(w.now), short(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Phase, s.Reason = phaseOf(w, s)
	return *s
}

func membersOf(w *world) v1alpha1.Members {
	var all v1alpha1.Members
	for _, m := range w.members {
		s := w.shown(m)
		if s == pending || m.terminating() || m.lost() {
			all.Unready = append(all.Unready, m.name())
			continue
		}
		all.Ready = append(all.Ready, m.name())
		switch {
		case s == primary:
			all.Primary = append(all.Primary, m.name())
		case s == failed || w.unclean(m) || w.barred(m):
			all.Failed = append(all.Failed, m.name())
		case s == secondary:
			all.Secondary = append(all.Secondary, m.name())
		}
	}
	return all
}

// shown is the state of a member, or while nobody knows what it was last shown as:
// a restart of the operator changes nothing, nor does an answer that was lost.
func (w *world) shown(m *member) state {
	s, was := w.state(m), &w.set.Status.Members
	switch {
	case s != unknown:
		return s
	case slices.Contains(was.Primary, m.name()) && w.grantedIn(m):
		return primary
	case slices.Contains(was.Secondary, m.name()):
		return secondary
	case slices.Contains(was.Failed, m.name()):
		return failed
	case slices.Contains(was.Ready, m.name()) && !slices.Contains(was.Primary, m.name()) && !w.configured(v1alpha1.CommandSecondary):
		return idle
	}
	return unknown
}

func phaseOf(w *world, s *v1alpha1.ReplicatedStatefulSetStatus) (v1alpha1.Phase, string) {
	says := func(kind string) *metav1.Condition { return meta.FindStatusCondition(s.Conditions, kind) }
	bad := says(v1alpha1.ConditionDegraded)
	switch {
	case w.invalid != "" || bad.Reason == v1alpha1.ReasonForeignObject || w.fatal() != "":
		return v1alpha1.PhaseFailed, bad.Message
	case says(v1alpha1.ConditionPaused).Status == metav1.ConditionTrue:
		return v1alpha1.PhasePaused, says(v1alpha1.ConditionPaused).Message
	case s.Epoch == 0 && len(s.Members.Primary) == 0:
		return v1alpha1.PhaseCreating, says(v1alpha1.ConditionProgressing).Message
	}
	for _, kind := range []string{v1alpha1.ConditionDataLossRisk, v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing} {
		if c := says(kind); c.Status == metav1.ConditionTrue {
			return v1alpha1.PhaseRunning, c.Message
		}
	}
	return v1alpha1.PhaseRunning, says(v1alpha1.ConditionAvailable).Message
}

func available(w *world, s *v1alpha1.ReplicatedStatefulSetStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	switch {
	case w.invalid != "":
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, "the spec cannot be served"
	case w.target() == 0:
		c.Reason, c.Message = v1alpha1.ReasonStopped, "no members are wanted"
	case int(s.Primaries) < w.target():
		c.Reason, c.Message = v1alpha1.ReasonBelowTarget, fmt.Sprintf("%d of %d primaries run", s.Primaries, w.target())
	case int(s.Primaries)-len(w.notServing()) < w.target():
		c.Reason = v1alpha1.ReasonNotServing
		c.Message = fmt.Sprintf("%d of %d primaries serve clients: %s", int(s.Primaries)-len(w.notServing()), w.target(), w.whyUnserved())
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonOnTarget
		c.Message = "primary: " + strings.Join(s.Members.Primary, ", ")
	}
	return c
}

func progressing(w *world, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: p.Waiting.Reason, Message: p.Waiting.Message}
	if c.Reason == "" && w.target() > 0 && w.serves() && !w.staffed(w.shown) {
		c.Reason, c.Message = v1alpha1.ReasonRecovering, "members are missing, or have not answered yet"
		if missing := w.among(func(m *member) bool { return w.shown(m) == pending || w.shown(m) == unknown }); len(missing) > 0 {
			c.Message = "not running, or without an answer: " + namesOf(missing) + whySilent(missing)
		}
	}
	if c.Reason == "" && w.serves() && len(w.among(w.outOfReach)) > 0 {
		c.Reason, c.Message = v1alpha1.ReasonWaitingForStop, w.whoMayRun()
	}
	if c.Reason == "" && w.serves() && len(w.notServing()) > 0 {
		c.Reason, c.Message = v1alpha1.ReasonRecovering, w.whyUnserved()
	}
	if c.Reason == "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonSteady, "nothing is on the way"
	}
	return c
}

func degraded(w *world) metav1.Condition {
	c := trouble(w)
	if c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonRecovering {
		return c
	}
	if resisting := w.among(w.resists); len(resisting) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonMembersFailed, w.whyResists(resisting[0])
	} else if unready := w.among(w.unreadyTooLong); len(unready) > 0 {
		m := unready[0]
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonNotServing
		c.Message = fmt.Sprintf("%s is primary, and its pod has not been Ready since %s, so no Service sends clients there. Why: kubectl -n %s describe pod %s. "+
			"If it does not come back, have it made anew, so that another takes over where one can: kubectl -n %s delete pod %s",
			m.name(), w.unreadySince(m).UTC().Format(time.RFC3339), m.pod.Namespace, m.name(), m.pod.Namespace, m.name())
	} else if w.excess != "" && c.Status == metav1.ConditionFalse {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonRulesUnfollowed
		c.Message = "spec.ruleSelector is not followed, and members stay as they are: " + w.excess + "; select fewer"
	}
	return c
}

// whyResists says what a member does not do, and how to see for oneself.
func (w *world) whyResists(m *member) string {
	f := w.failure(m)
	return fmt.Sprintf("%s of %s %s. What status says of it: %s", f.Command, m.name(), howFailed(int(f.Code)), w.askByHand(m))
}

// askByHand is what a person runs in a shell to see what status says; it changes
// nothing.
func (w *world) askByHand(m *member) string {
	c := w.command(m, v1alpha1.CommandStatus, v1alpha1.CommandStatus)
	return fmt.Sprintf("kubectl -n %s exec %s -c %s -- %s; echo $?", m.pod.Namespace, m.name(), c.Container, quoted(c.Argv))
}

// quoted writes arguments so that a shell takes them as they are. A script that would
// leave no room in a message is not shown.
func quoted(argv []string) string {
	var words []string
	for _, a := range argv {
		if !plainWord.MatchString(a) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	if line := strings.Join(words, " "); len(line) <= mostShown {
		return line
	}
	return "(the command status of the spec)"
}

// mostShown is how many bytes of a command a message has room for.
const mostShown = 300

// plainWord means to a shell what it says.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// trouble is what holds up an update too.
func trouble(w *world) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}
	broken := w.among(func(m *member) bool {
		f := w.failure(m)
		return w.shown(m) == failed || w.unclean(m) || w.barred(m) || f != nil && dud(f) && f.Count >= *w.set.Spec.FailureThreshold && w.shown(m) != secondary
	})
	lost, strangers := w.among(w.outOfReach), w.among(func(m *member) bool { return w.stranger(m) != "" })
	mute, limping := w.among(func(m *member) bool { return w.unanswered(m) || m.mute() }), w.among(w.limping)
	switch foreign := w.foreign(); {
	case w.invalid != "":
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, "the spec cannot be served, and nothing is done: "+w.invalid
	case foreign != "":
		c.Reason, c.Message = v1alpha1.ReasonForeignObject, foreign+" belongs to somebody else and is left alone; rename or delete it"
	case len(strangers) > 0:
		c.Reason, c.Message = v1alpha1.ReasonForeignPods, w.whyStranger(strangers)
	case w.fatal() != "":
		c.Reason, c.Message = v1alpha1.ReasonMembersFailed, w.fatal()
	case len(lost) > 0:
		c.Reason = v1alpha1.ReasonNodeUnreachable
		c.Message = fmt.Sprintf("%s may be primary on Node %s, which does not answer, and no other takes its place until it has stopped. "+
			"If that machine is off, say so: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			lost[0].name(), lost[0].pod.Spec.NodeName, lost[0].pod.Spec.NodeName)
	case len(w.missing) > 0:
		c.Reason, c.Message = v1alpha1.ReasonSecretMissing, "these Secrets of spec.TLS do not exist: "+strings.Join(w.missing, ", ")
	case w.refused != "":
		c.Reason, c.Message = v1alpha1.ReasonWriteRefused, "the API server refuses what has to be written, and it is tried again: "+w.refused
	case len(broken) > 0:
		c.Reason, c.Message = v1alpha1.ReasonMembersFailed, "failed: "+namesOf(broken)
	case len(mute) > 0:
		c.Reason, c.Message = v1alpha1.ReasonMembersDegraded, w.whyMute(mute)
	case len(limping) > 0:
		c.Reason, c.Message = v1alpha1.ReasonMembersDegraded, "run degraded, says their status (exit code 190 or 191): "+namesOf(limping)
	case w.serves() && len(w.primaries()) > w.target():
		c.Reason, c.Message = v1alpha1.ReasonRecovering, "more members are primary than shall be: "+namesOf(w.primaries())
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonHealthy, "nothing needs a person"
	}
	return c
}

// foreign names a child whose name somebody else has; "" if none has.
func (w *world) foreign() string {
	for _, name := range []string{serviceName(w.set), primaryServiceName(w.set), activeServiceName(w.set)} {
		if s := w.services[name]; s != nil && !w.ours(s) {
			return "Service " + name
		}
	}
	switch {
	case w.stateful != nil && !w.ours(w.stateful):
		return "StatefulSet " + w.stateful.Name
	case w.budget != nil && !w.ours(w.budget):
		return "PodDisruptionBudget " + w.budget.Name
	}
	return ""
}

func seeded(w *world, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSeeded, Status: metav1.ConditionFalse}
	said := cmp.Or(p.Waiting.Message, "no member has been started yet")
	if p.Waiting.Message == "" && w.books.epoch > 0 {
		said = fmt.Sprintf("the primary of epoch %d has stopped, and the next one is being chosen", w.books.epoch)
	}
	switch {
	case len(w.primaries()) > 0 || len(w.books.grants) > 0 && meta.IsStatusConditionTrue(w.set.Status.Conditions, c.Type):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSeeded, fmt.Sprintf("epoch %d", w.books.epoch)
	case p.blind != "":
		c.Reason = v1alpha1.ReasonSequenceUnknown
		c.Message = fmt.Sprintf("nobody knows how new the copies of these are: %s. To seed from one all the same, and lose what only others have: "+
			"kubectl -n %s annotate rss %s %s=<pod>", p.blind, w.set.Namespace, w.set.Name, v1alpha1.AnnotationSeedFrom)
	case slices.ContainsFunc(w.books.failures, func(f v1alpha1.Failure) bool { return f.Command == v1alpha1.CommandSeed }):
		c.Reason, c.Message = v1alpha1.ReasonSeedFailed, "the newest copy could not be started; "+said
	default:
		c.Reason, c.Message = v1alpha1.ReasonNotSeeded, said
	}
	return c
}

func dataLossRisk(p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDataLossRisk, Status: metav1.ConditionTrue}
	switch {
	case p.risk != "":
		c.Reason, c.Message = v1alpha1.ReasonNewestMissing, p.risk+"; nothing is started until that copy is back, or annotation "+v1alpha1.AnnotationSeedFrom+" names another"
	case p.blind != "":
		c.Reason, c.Message = v1alpha1.ReasonSequenceUnknown, "nobody knows how new the copies of these are: "+p.blind
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNewestPresent, "no newer copy is missed"
	}
	return c
}

func paused(w *world) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}
	switch {
	case w.set.Spec.Paused:
		c.Reason, c.Message = v1alpha1.ReasonPausedByUser, "spec.paused is true: no command is run, and the number of pods stays"
	case w.tooFew():
		c.Reason = v1alpha1.ReasonReplicasTooLow
		c.Message = fmt.Sprintf("Replica count (%d) for %s is too low (should be %d or higher)", ptr.Deref(w.set.Spec.Replicas, 0), statefulSetName(w.set), w.set.Status.RestoreReplicas)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotPaused, "the operator acts"
	}
	return c
}

// short fits a text into a condition or an event.
func short(text string) string { return strings.ToValidUTF8(text[:min(len(text), 1000)], "") }
