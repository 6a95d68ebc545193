package replicatedstatefulset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// summarize returns the new status. Transition times of unchanged conditions stay.
func summarize(p *plan) v1alpha1.ReplicatedStatefulSetStatus {
	f := p.on
	s := f.set.Status.DeepCopy()
	p.record.into(s)
	s.ObservedGeneration = f.set.Generation
	s.ControlPaused = f.set.Spec.Paused
	s.Selector, s.ServiceName = labels.SelectorFromSet(ownLabels(f.set)).String(), serviceName(f.set)
	s.Members = listMembers(f)
	s.Replicas = int32(len(s.Members.Ready))
	s.ReadyReplicas = int32(len(f.among(func(m *member) bool { return countsAsReady(m, &s.Members) })))
	s.Primaries, s.PrimariesWanted = int32(len(s.Members.Primary)), int32(f.target())
	if n := int32(f.wanted()); n > 0 && s.Replicas == n && len(f.members) == int(n) {
		s.RestoreReplicas = n
	}
	if isUnknownStop(f.world) {
		s.RestoreReplicas = f.copies
	}
	s.Unanswered = nil
	for _, m := range f.members {
		if m.notAnswering {
			s.Unanswered = append(
				s.Unanswered,
				v1alpha1.Unanswered{
					Pod:         m.name(),
					ContainerID: m.running(),
					Since:       metav1.NewTime(m.askedAt.Truncate(time.Second)),
				},
			)
		}
	}
	for _, c := range withKstatus(f, []metav1.Condition{available(f, s), progressing(f, p), withCauses(f, needsPerson(f)), seeded(f, p), dataLossRisk(p), paused(f), draining(p), maintenance(p)}) {
		c.ObservedGeneration, c.LastTransitionTime, c.Message = f.set.Generation, metav1.NewTime(f.now), excerpt.Message(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Phase, s.Reason = phaseOf(f, s)
	return *s
}

// countsAsReady reports whether a member runs its application and serves clients.
func countsAsReady(m *member, all *v1alpha1.Members) bool {
	runs := m.shown == primary || m.shown == secondary
	return runs && !m.parked && m.unserved() == "" && slices.Contains(all.Ready, m.name())
}

// listMembers returns the members by their reported state.
func listMembers(f *facts) v1alpha1.Members {
	var all v1alpha1.Members
	for _, m := range f.members {
		if m.shown == pending || m.terminating() || m.lost() {
			all.Unready = append(all.Unready, m.name())
			continue
		}
		all.Ready = append(all.Ready, m.name())
		switch {
		case m.shown == primary:
			all.Primary = append(all.Primary, m.name())
		case f.hasFailed(m):
			all.Failed = append(all.Failed, m.name())
		case m.shown == secondary:
			all.Secondary = append(all.Secondary, m.name())
		}
	}
	return all
}

// hasFailed reports whether a member has failed, or cannot be started in its pod. Parked members
// never count as failed, because a user works on them.
func (f *facts) hasFailed(m *member) bool {
	if m.parked {
		return false
	}
	return m.shown == failed || m.needsStop() || m.cannotRunHere
}

func phaseOf(f *facts, s *v1alpha1.ReplicatedStatefulSetStatus) (v1alpha1.Phase, string) {
	says := func(kind string) *metav1.Condition { return meta.FindStatusCondition(s.Conditions, kind) }
	bad := says(v1alpha1.ConditionDegraded)
	switch {
	case f.invalid != "", bad.Reason == v1alpha1.ReasonForeignObject, f.fatal() != "":
		return v1alpha1.PhaseFailed, bad.Message
	case says(v1alpha1.ConditionPaused).Status == metav1.ConditionTrue:
		return v1alpha1.PhasePaused, says(v1alpha1.ConditionPaused).Message
	case s.Epoch == 0 && len(s.Members.Primary) == 0 && bad.Reason == v1alpha1.ReasonMembersCannotStart:
		return v1alpha1.PhaseCreating, bad.Message
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

func available(f *facts, s *v1alpha1.ReplicatedStatefulSetStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	serve, expected := int(s.Primaries)-len(f.notServing()), expectedPrimaries(f)
	switch {
	case f.invalid != "":
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, "the spec is invalid"
	case f.target() == 0:
		c.Reason, c.Message = v1alpha1.ReasonStopped, "no members are requested"
	case int(s.Primaries) < expected:
		c.Reason, c.Message = v1alpha1.ReasonBelowTarget, fmt.Sprintf(
			"%d of %d primaries run",
			s.Primaries, expected,
		)
	case serve < expected:
		c.Reason = v1alpha1.ReasonNotServing
		c.Message = fmt.Sprintf(
			"%d of %d primaries serve clients: %s",
			serve, expected, f.whyUnserved(),
		)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonOnTarget
		c.Message = "primary: " + strings.Join(s.Members.Primary, ", ")
	}
	return c
}

// notice is the reason and message of a condition. It is empty if there is none.
type notice = engine.Notice

func progressing(f *facts, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	for _, found := range []notice{p.Waiting, parkingUnderWay(f, p), recovering(f), updating(f, p), configChanged(f)} {
		if found.Reason != "" {
			c.Reason, c.Message = found.Reason, found.Message
			return c
		}
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonSteady, "no operation in progress"
	return c
}

// recovering returns the notice about missing members or roles if no rule waits for them.
func recovering(f *facts) notice {
	switch {
	case !f.serves():
		return notice{}
	case f.target() > 0 && !f.shownWellStaffed():
		return notice{Reason: v1alpha1.ReasonRecovering, Message: whoIsMissing(f)}
	case len(f.among((*member).outOfReach)) > 0:
		return notice{Reason: v1alpha1.ReasonWaitingForStop, Message: f.whoMayRun()}
	case len(f.notServing()) > 0:
		return notice{Reason: v1alpha1.ReasonRecovering, Message: f.whyUnserved()}
	}
	return notice{}
}

// updating returns the notice that members must be recreated, also before the rule can act: while
// the StatefulSet gets its template, and until its controller has observed it.
func updating(f *facts, p *plan) notice {
	outdated := f.among(func(m *member) bool { return !m.upToDate })
	if !f.starts() || (len(outdated) == 0 && !p.newTemplate) {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonUpdating, Message: updatingMessageOf(f.world)}
}

// updatingMessage is the message while members have another template.
const updatingMessage = "recreating members from the current template, one at a time"

// updatingMessageOf returns the message for a set, which differs if members may be changed in
// place.
func updatingMessageOf(w *world) string {
	if w.changesInPlace() {
		return "updating members to the current template, one at a time: in place if only cpu and memory changed, otherwise by recreating them"
	}
	return updatingMessage
}

// whoIsMissing names the members that do not run, or have not answered.
func whoIsMissing(f *facts) string {
	missing := f.among(func(m *member) bool {
		return !m.parked && (m.shown == pending || m.shown == unknown)
	})
	if len(missing) == 0 {
		return "members are missing, or have not responded yet"
	}
	return "not running, or not responding: " + namesOf(missing) + whySilent(missing)
}

// needsPerson returns condition Degraded with all reasons, including those that do not block
// updates.
func needsPerson(f *facts) metav1.Condition {
	c := trouble(f)
	if c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonRecovering {
		return c
	}
	resisting, unready := f.among((*member).resistsUs), f.among(f.unreadyTooLong)
	untried := recreationRefused(f)
	undone := writeUndone(f)
	switch {
	case len(resisting) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonMembersFailed, f.whyResists(resisting[0])
	case len(unready) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonNotServing, whyUnready(unready[0])
	case secondariesUnready(f).Reason != "" && c.Status == metav1.ConditionFalse:
		unready := secondariesUnready(f)
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, unready.Reason, unready.Message
	case untried.Reason != "" && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, untried.Reason, untried.Message
	case undone.Reason != "" && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, undone.Reason, undone.Message
	case configUnread(f).Reason != "" && c.Status == metav1.ConditionFalse:
		unread := configUnread(f)
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, unread.Reason, unread.Message
	case f.config.cached != "" && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonConfigCached, f.config.cached
	case f.excess != "" && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonRulesUnfollowed
		c.Message = "spec.ruleSelector is ignored, and members are not updated for it: " + f.excess + "; select fewer"
	}
	return c
}

func whyUnready(m *member) string {
	return fmt.Sprintf("%s is primary, but its pod has not been Ready since %s, so no Service sends clients to it. For details: kubectl -n %s describe pod %s. "+
		"If it does not recover, delete the pod, so that another member takes over if possible: kubectl -n %s delete pod %s",
		m.name(), m.unreadySince.UTC().Format(time.RFC3339), m.pod.Namespace, m.name(), m.pod.Namespace, m.name())
}

// whyResists states which command of a member failed, and how to check its status manually.
func (f *facts) whyResists(m *member) string {
	return fmt.Sprintf(
		"%s of %s %s. To check its status: %s",
		m.failure.Command, m.name(), howFailed(int(m.failure.Code)), f.askByHand(m),
	)
}

// askByHand returns a shell command that shows the output of status. It changes nothing.
func (f *facts) askByHand(m *member) string {
	c := f.command(m, v1alpha1.CommandStatus, v1alpha1.CommandStatus, f.record.epoch)
	return fmt.Sprintf(
		"kubectl -n %s exec %s -c %s -- %s; echo $?",
		m.pod.Namespace, m.name(), c.Container, quoted(c.Argv),
	)
}

// quoted quotes arguments for a shell. It omits a script that is too long for a message.
func quoted(argv []string) string {
	var words []string
	for _, a := range argv {
		if !plainWord.MatchString(a) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	if line := strings.Join(words, " "); len(line) <= maxShown {
		return line
	}
	return "(command status of the spec)"
}

// maxShown is the max length in bytes of a command in a message.
const maxShown = 300

// plainWord matches words that a shell does not interpret.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// troubles are the checks for problems of a set, the most important first. Each returns its reason
// and message, or nothing.
var troubles = []func(*facts) notice{
	invalidSpec, foreignObject, foreignPods, wrongConfiguration, nodeUnreachable, secretMissing, configMissing, writeRefused, podUndone,
	membersFailed, membersUnresponsive, membersDegraded, tooManyPrimaries,
}

// trouble returns condition Degraded with the reasons that also block updates.
func trouble(f *facts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}
	for _, find := range troubles {
		if found := find(f); found.Reason != "" {
			c.Reason, c.Message = found.Reason, found.Message
			return c
		}
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonHealthy, "no problems detected"
	return c
}

func invalidSpec(f *facts) notice {
	if f.invalid == "" {
		return notice{}
	}
	return notice{
		Reason:  v1alpha1.ReasonInvalidSpec,
		Message: "the spec is invalid, and the operator takes no action: " + f.invalid,
	}
}

func foreignObject(f *facts) notice {
	described, child := f.foreign()
	if child == nil {
		return notice{}
	}
	return notice{
		Reason:  v1alpha1.ReasonForeignObject,
		Message: whoseIsIt(described, f.set.Namespace, child),
	}
}

// foreign returns an object that has the name of a child but belongs to another object, and its
// description. It returns nil if there is none.
func (w *world) foreign() (described string, child metav1.Object) {
	for _, name := range []string{serviceName(w.set), primaryServiceName(w.set), activeServiceName(w.set)} {
		if s := w.services[name]; s != nil && !w.ours(s) {
			return "Service " + name, s
		}
	}
	if s := w.stateful; s != nil && !w.ours(s) {
		return "StatefulSet " + s.Name, s
	}
	for _, b := range []*policyv1.PodDisruptionBudget{w.budget, w.primaryBudget} {
		if b != nil && !w.ours(b) {
			return "PodDisruptionBudget " + b.Name, b
		}
	}
	return "", nil
}

func foreignPods(f *facts) notice {
	strangers := f.among(func(m *member) bool { return m.stranger != "" })
	if len(strangers) == 0 {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonForeignPods, Message: explainStrangers(strangers)}
}

func wrongConfiguration(f *facts) notice {
	why := f.fatal()
	if why == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonMembersFailed, Message: why}
}

func nodeUnreachable(f *facts) notice {
	lost := f.among((*member).outOfReach)
	if len(lost) == 0 {
		return notice{}
	}
	m := lost[0]
	if m.node.Missing {
		return notice{Reason: v1alpha1.ReasonNodeUnreachable, Message: fmt.Sprintf("%s may be primary on Node %s, which no longer exists. "+
			"Another member takes over when the Node has been missing for %s; if its machine is still running, power it off",
			m.name(), m.pod.Spec.NodeName, fenceAfter)}
	}
	return notice{Reason: v1alpha1.ReasonNodeUnreachable, Message: fmt.Sprintf("%s may be primary on Node %s, which is unreachable, and no other member takes over until it has stopped. "+
		"If the machine is off, mark the Node as out of service: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		m.name(), m.pod.Spec.NodeName, m.pod.Spec.NodeName)}
}

func secretMissing(f *facts) notice {
	if len(f.missing) == 0 {
		return notice{}
	}
	return notice{
		Reason:  v1alpha1.ReasonSecretMissing,
		Message: "these Secrets of spec.TLS do not exist: " + strings.Join(f.missing, ", "),
	}
}

// writeUndone returns the notice about writes that an admission webhook or policy reverts.
func writeUndone(f *facts) notice {
	message := f.undone.Message()
	if message == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonWriteRefused, Message: message}
}

// podUndone returns the same notice if the reverted writes are on pods, for example role labels.
// This blocks updates, because a role could not be handed over.
func podUndone(f *facts) notice {
	if !f.undone.Touches("pod") {
		return notice{}
	}
	return writeUndone(f)
}

func writeRefused(f *facts) notice {
	if f.refused == "" {
		return notice{}
	}
	return notice{
		Reason:  v1alpha1.ReasonWriteRefused,
		Message: "the API server refuses a required write, which will be retried: " + f.refused,
	}
}

func membersFailed(f *facts) notice {
	broken := f.among(func(m *member) bool { return f.hasFailed(m) || f.startsInVain(m) })
	if len(broken) == 0 {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonMembersFailed, Message: "failed: " + namesOf(broken)}
}

// startsInVain reports whether a member was started failureThreshold times or more and made no
// primary.
func (f *facts) startsInVain(m *member) bool {
	x := m.failure
	return x != nil && !m.parked && isUnconfirmedStart(x) && x.Count >= *f.set.Spec.FailureThreshold && m.shown != secondary
}

func membersUnresponsive(f *facts) notice {
	members := f.among(func(m *member) bool { return !m.parked && (m.notAnswering || m.unresponsive()) })
	if len(members) == 0 {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonMembersDegraded, Message: f.whyUnresponsive(members)}
}

func membersDegraded(f *facts) notice {
	degraded := f.among(func(m *member) bool { return m.degraded() && !m.parked })
	if len(degraded) == 0 {
		return notice{}
	}
	return notice{
		Reason:  v1alpha1.ReasonMembersDegraded,
		Message: "status reports degraded members (exit code 190 or 191): " + namesOf(degraded),
	}
}

func tooManyPrimaries(f *facts) notice {
	live := f.primaries()
	if !f.serves() || len(live) <= f.target() {
		return notice{}
	}
	return notice{
		Reason:  v1alpha1.ReasonRecovering,
		Message: "more members are primary than requested: " + namesOf(live),
	}
}

func seeded(f *facts, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSeeded, Status: metav1.ConditionFalse}
	wasSeeded := f.record.hasGrants() && meta.IsStatusConditionTrue(f.set.Status.Conditions, c.Type)
	failedSeed := func(x v1alpha1.Failure) bool { return x.Command == v1alpha1.CommandSeed }
	switch {
	case wasSeeded, len(f.primaries()) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSeeded, fmt.Sprintf("epoch %d", f.record.epoch)
	case p.blind != "":
		c.Reason = v1alpha1.ReasonSequenceUnknown
		c.Message = fmt.Sprintf("data version unknown for %s. To seed from one anyway, and lose data that only others have: "+
			"kubectl -n %s annotate rss %s %s=<pod>", p.blind, f.set.Namespace, f.set.Name, v1alpha1.AnnotationSeedFrom)
	case slices.ContainsFunc(f.record.failures, failedSeed):
		c.Reason, c.Message = v1alpha1.ReasonSeedFailed, "the newest copy could not be started; "+whyNotSeeded(p)
	default:
		c.Reason, c.Message = v1alpha1.ReasonNotSeeded, whyNotSeeded(p)
	}
	return c
}

func whyNotSeeded(p *plan) string {
	switch {
	case p.Waiting.Message != "":
		return p.Waiting.Message
	case p.on.record.epoch > 0:
		return fmt.Sprintf(
			"the primary of epoch %d has stopped, and the next primary is being chosen",
			p.on.record.epoch,
		)
	}
	return "no member has been started yet"
}

func dataLossRisk(p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDataLossRisk, Status: metav1.ConditionTrue}
	switch {
	case p.risk != "":
		c.Reason, c.Message = v1alpha1.ReasonNewestMissing, p.risk+"; no member is started until that copy is available, or annotation "+v1alpha1.AnnotationSeedFrom+" names another member"
	case p.blind != "":
		c.Reason, c.Message = v1alpha1.ReasonSequenceUnknown, "data version unknown for "+p.blind
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNewestPresent, "the newest known data is available"
		if text := uncomparedOf(p); text != "" {
			c.Reason, c.Message = v1alpha1.ReasonPrimaryNotCompared, text
		}
	}
	return c
}

// uncomparedOf names the copy that may have been newer than that of the current primary when it was
// promoted. It is "" if there is none. The stored condition applies while the epoch is the one in
// its message.
func uncomparedOf(p *plan) string {
	if p.uncompared != "" {
		return p.uncompared
	}
	was := meta.FindStatusCondition(p.on.set.Status.Conditions, v1alpha1.ConditionDataLossRisk)
	if was == nil || was.Reason != v1alpha1.ReasonPrimaryNotCompared || !strings.HasPrefix(was.Message, beginningOf(p.record.epoch)) {
		return ""
	}
	return was.Message
}

func paused(f *facts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}
	switch {
	case f.set.Spec.Paused:
		c.Reason, c.Message = v1alpha1.ReasonPausedByUser, "spec.paused is true: no command is run, and the number of pods does not change"
	case f.tooFew():
		c.Reason = v1alpha1.ReasonReplicasTooLow
		c.Message = fmt.Sprintf(
			"Replica count (%d) for %s is too low (should be %d or higher)",
			ptr.Deref(f.set.Spec.Replicas, 0), statefulSetName(f.set), f.set.Status.RestoreReplicas,
		)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotPaused, "the set is not paused"
	}
	return c
}
