package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Summarize returns the new status. Transition times of unchanged conditions stay.
func Summarize(p *rules.Plan) v1alpha1.ReplicatedStatefulSetStatus {
	f := p.On
	s := f.Set.Status.DeepCopy()
	p.Record.Into(s)
	s.ObservedGeneration = f.Set.Generation
	s.ControlPaused = f.Set.Spec.Paused
	s.Selector, s.ServiceName = labels.SelectorFromSet(spec.OwnLabels(f.Set)).String(), spec.ServiceName(f.Set)
	s.Members = listMembers(f)
	s.Replicas = int32(len(s.Members.Ready))
	s.ReadyReplicas = int32(len(f.Among((*facts.Member).Serves)))
	s.AvailableReplicas = int32(len(f.Among(f.IsAvailable)))
	s.Primaries, s.PrimariesWanted = int32(len(s.Members.Primary)), int32(f.WantedPrimaries())
	if n := int32(f.Wanted()); n > 0 && s.Replicas == n && len(f.Members) == int(n) {
		s.RestoreReplicas = n
	}
	if facts.FormerSizeIsUnknown(f.World) {
		s.RestoreReplicas = f.MembersWithClaims
	}
	s.Unanswered = nil
	for _, m := range f.Members {
		if m.NotAnswering {
			s.Unanswered = append(
				s.Unanswered,
				v1alpha1.Unanswered{
					Pod:         m.Name(),
					ContainerID: m.Running(),
					Since:       metav1.NewTime(m.AskedAt.Truncate(time.Second)),
				},
			)
		}
	}
	for _, c := range withKstatus(f, []metav1.Condition{available(f, s), progressing(f, p), withCauses(f, degraded(f)), seeded(f, p), dataLossRisk(p), paused(f), draining(p), maintenance(p)}) {
		c.ObservedGeneration, c.LastTransitionTime, c.Message = f.Set.Generation, metav1.NewTime(f.Now), excerpt.Message(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Phase, s.Reason = phaseOf(f, s)
	return *s
}

// listMembers returns the members by their reported state.
func listMembers(f *facts.Facts) v1alpha1.Members {
	var all v1alpha1.Members
	for _, m := range f.Members {
		if m.Shown == record.Pending || m.Terminating() || m.NodeUnreachable() {
			all.Unready = append(all.Unready, m.Name())
			continue
		}
		all.Ready = append(all.Ready, m.Name())
		switch {
		case m.Shown == record.Primary:
			all.Primary = append(all.Primary, m.Name())
		case f.HasFailed(m):
			all.Failed = append(all.Failed, m.Name())
		case m.Shown == record.Secondary:
			all.Secondary = append(all.Secondary, m.Name())
		}
	}
	return all
}

// phaseOf returns the phase of a set, and the message of the condition that explains it.
func phaseOf(f *facts.Facts, s *v1alpha1.ReplicatedStatefulSetStatus) (v1alpha1.Phase, string) {
	conditionOf := func(kind string) *metav1.Condition { return meta.FindStatusCondition(s.Conditions, kind) }
	bad := conditionOf(v1alpha1.ConditionDegraded)
	switch {
	case f.Invalid != "", bad.Reason == v1alpha1.ReasonForeignObject, f.Fatal() != "":
		return v1alpha1.PhaseFailed, bad.Message
	case conditionOf(v1alpha1.ConditionPaused).Status == metav1.ConditionTrue:
		return v1alpha1.PhasePaused, conditionOf(v1alpha1.ConditionPaused).Message
	case s.Epoch == 0 && len(s.Members.Primary) == 0 && bad.Reason == v1alpha1.ReasonMembersCannotStart:
		return v1alpha1.PhaseCreating, bad.Message
	case s.Epoch == 0 && len(s.Members.Primary) == 0:
		return v1alpha1.PhaseCreating, conditionOf(v1alpha1.ConditionProgressing).Message
	}
	for _, kind := range []string{v1alpha1.ConditionDataLossRisk, v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing} {
		if c := conditionOf(kind); c.Status == metav1.ConditionTrue {
			return v1alpha1.PhaseRunning, c.Message
		}
	}
	return v1alpha1.PhaseRunning, conditionOf(v1alpha1.ConditionAvailable).Message
}

// available returns condition Available: whether the expected number of primaries serves clients.
func available(f *facts.Facts, s *v1alpha1.ReplicatedStatefulSetStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	serve, expected := int(s.Primaries)-len(f.NotServing()), facts.ExpectedPrimaries(f)
	switch {
	case f.Invalid != "":
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, "the spec is invalid"
	case f.WantedPrimaries() == 0:
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
			serve, expected, f.WhyUnserved(),
		)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonOnTarget
		c.Message = "primary: " + strings.Join(s.Members.Primary, ", ")
	}
	return c
}

// progressing returns condition Progressing: the operation that is in progress or awaited.
func progressing(f *facts.Facts, p *rules.Plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	found := cmp.Or(p.Waiting, parkingUnderWay(f, p), recovering(f), updating(f, p), configChanged(f))
	if c.Reason, c.Message = found.Reason, found.Message; found.Message != "" {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonSteady, "no operation in progress"
	return c
}

// recovering returns the notice about missing members or roles if no rule waits for them.
func recovering(f *facts.Facts) facts.Notice {
	rejoining := f.Among(func(m *facts.Member) bool { return m.MustRejoin && !m.Parked })
	switch {
	case !f.MayRunCommands():
		return facts.Notice{}
	case f.WantedPrimaries() > 0 && !f.ShownWellStaffed():
		return facts.Notice{Reason: v1alpha1.ReasonRecovering, Message: whoIsMissing(f)}
	case len(rejoining) > 0:
		return facts.Notice{Reason: v1alpha1.ReasonRecovering, Message: "the application may have forgotten these members until they are restarted: " + facts.NamesOf(rejoining)}
	case len(f.Among((*facts.Member).OutOfReach)) > 0:
		return facts.Notice{Reason: v1alpha1.ReasonWaitingForStop, Message: f.WhoMayRun()}
	case len(f.NotServing()) > 0:
		return facts.Notice{Reason: v1alpha1.ReasonRecovering, Message: f.WhyUnserved()}
	}
	return facts.Notice{}
}

// updating returns the notice that members must be recreated, also before the rule can act: while
// the StatefulSet gets its template, and until its controller has observed it.
func updating(f *facts.Facts, p *rules.Plan) facts.Notice {
	outdated := f.Among(func(m *facts.Member) bool { return !m.UpToDate })
	if !f.MayStartMembers() || (len(outdated) == 0 && !p.NewTemplate) {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonUpdating, Message: rules.UpdatingMessageOf(f.World)}
}

// whoIsMissing names the members that do not run, or have not answered.
func whoIsMissing(f *facts.Facts) string {
	missing := f.Among(func(m *facts.Member) bool {
		return !m.Parked && (m.Shown == record.Pending || m.Shown == record.Unknown)
	})
	if len(missing) == 0 {
		return "members are missing, or have not responded yet"
	}
	return "not running, or not responding: " + facts.NamesOf(missing) + facts.WhyNoAnswer(missing)
}

// degraded returns condition Degraded with all reasons. facts.Trouble has only those that also
// block updates. The reasons that are added here do not replace one of facts.Trouble, except
// Recovering.
func degraded(f *facts.Facts) metav1.Condition {
	c := facts.Trouble(f)
	if c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonRecovering {
		return c
	}
	staying, idle := f.Among(f.FailsToLeave), f.Among(f.FailsToStart)
	resisting, unready := f.Among((*facts.Member).RefusesUnparked), f.Among(func(m *facts.Member) bool { return UnreadyTooLong(&f.Clock, m) })
	untried := recreationRefused(f)
	undone := facts.WriteUndone(f)
	switch {
	case len(resisting) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonMembersFailed, whyResists(f, resisting[0])
	case len(unready) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonNotServing, whyUnready(unready[0])
	case len(staying) > 0 && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonMembersFailed, whyStays(f, staying[0])
	case len(idle) > 0 && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonMembersFailed, whyIdle(idle[0])
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
	case f.Config.Cached != "" && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonConfigCached, f.Config.Cached
	case f.WhyRulesIgnored != "" && c.Status == metav1.ConditionFalse:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonRulesUnfollowed
		c.Message = "spec.ruleSelector is ignored, and members are not updated for it: " + f.WhyRulesIgnored + "; select fewer"
	}
	return c
}

// configUnread returns the notice about configuration that cannot be read.
func configUnread(f *facts.Facts) facts.Notice {
	t := &f.Config.Target
	if t.Reason != configuration.ReasonUnreadable {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonConfigUnreadable,
		Message: "spec.updateOnEnvChange is ignored, and no member is restarted for it: " + t.Message}
}

// configChanged returns the notice about a pending restart for a configuration change, and the
// reason for its delay.
func configChanged(f *facts.Facts) facts.Notice {
	t := &f.Config.Target
	switch t.Reason {
	case configuration.ReasonChanged:
		return facts.Notice{Reason: v1alpha1.ReasonConfigChanged, Message: t.Message}
	case configuration.ReasonTurn:
		return facts.Notice{Reason: v1alpha1.ReasonConfigTurn, Message: t.Message}
	}
	return facts.Notice{}
}

// UnreadyTooLong reports whether a primary has been unready for UnreadyAfter. It uses the clock,
// because the kubelet observed it even if no operator ran.
func UnreadyTooLong(c *facts.Clock, m *facts.Member) bool {
	return m.IsShownPrimary() && isUnreadyFor(c, m, spec.UnreadyAfter)
}

// followsUnready reports whether the pod of a secondary has been unready for UnreadyAfter.
func followsUnready(c *facts.Clock, m *facts.Member) bool {
	follows := m.Shown == record.Secondary && !m.Terminating() && !m.NodeUnreachable() && !m.Parked
	return follows && isUnreadyFor(c, m, spec.UnreadyAfter)
}

// isUnreadyFor reports whether the pod of a member has been unready for that time.
func isUnreadyFor(c *facts.Clock, m *facts.Member, time time.Duration) bool {
	return !podstate.Ready(m.Pod) && c.Now.Sub(m.ReadyChangedAt) >= time
}

// secondariesUnready returns the notice about secondaries that are not Ready.
func secondariesUnready(f *facts.Facts) facts.Notice {
	unready := f.Among(func(m *facts.Member) bool { return followsUnready(&f.Clock, m) })
	if len(unready) == 0 {
		return facts.Notice{}
	}
	m := unready[0]
	return facts.Notice{Reason: v1alpha1.ReasonMembersNotReady, Message: fmt.Sprintf(
		"%d of %d members run as secondaries, but their pods are not Ready: %s. For details: kubectl -n %s describe pod %s",
		len(unready), f.Wanted(), facts.NamesOf(unready), m.Pod.Namespace, m.Name(),
	)}
}

// recreationRefused returns the refusal of the last dry run, while members are outdated.
func recreationRefused(f *facts.Facts) facts.Notice {
	outdated := f.Among(func(m *facts.Member) bool { return !m.UpToDate })
	if f.RefusedDryRun.Text == "" || len(outdated) == 0 {
		return facts.Notice{}
	}
	return facts.Notice{
		Reason: v1alpha1.ReasonWriteRefused,
		Message: "no member is stopped for the update, because the API server would not create its new pod; " +
			"correct the template, or the policy or quota that refuses it: " + f.RefusedDryRun.Text,
	}
}

// whyUnready returns the message about a primary that is not Ready, with a remedy.
func whyUnready(m *facts.Member) string {
	return fmt.Sprintf("%s is primary, but its pod has not been Ready since %s, so no Service sends clients to it. For details: kubectl -n %s describe pod %s. "+
		"If it does not recover, delete the pod, so that another member takes over if possible: kubectl -n %s delete pod %s",
		m.Name(), m.ReadyChangedAt.UTC().Format(time.RFC3339), m.Pod.Namespace, m.Name(), m.Pod.Namespace, m.Name())
}

// whyResists states which command of a member failed, and how to check its status manually.
func whyResists(f *facts.Facts, m *facts.Member) string {
	return fmt.Sprintf(
		"%s of %s %s. To check its status: %s",
		m.Failure.Command, m.Name(), record.HowFailed(int(m.Failure.Code)), f.StatusCommandLine(m),
	)
}

// whyStays states why a scale-down is blocked by the command leave of a member, with the remedies.
func whyStays(f *facts.Facts, m *facts.Member) string {
	return fmt.Sprintf("%s is not removed, because leave %s. To run it, and see its output: %s%s",
		m.Name(), record.HowFailed(int(m.Membership.ExitCode)), f.CommandLine(m, v1alpha1.CommandLeave), rules.HowToSkipLeave)
}

// whyIdle states which start of a member failed, and where the cause is.
func whyIdle(m *facts.Member) string {
	return fmt.Sprintf("%s of %s %s, %d times, and is retried. For the cause: kubectl -n %s logs %s -c %s",
		m.Failure.Command, m.Name(), record.HowFailed(int(m.Failure.Code)), m.Failure.Count, m.Pod.Namespace, m.Name(), m.CommandsIn)
}

// seeded returns condition Seeded: whether a first primary of this epoch runs, or ran and has a
// grant.
func seeded(f *facts.Facts, p *rules.Plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSeeded, Status: metav1.ConditionFalse}
	wasSeeded := f.Record.HasGrants() && meta.IsStatusConditionTrue(f.Set.Status.Conditions, c.Type)
	failedSeed := func(x v1alpha1.Failure) bool { return x.Command == v1alpha1.CommandSeed }
	switch {
	case wasSeeded, len(f.Primaries()) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonSeeded, fmt.Sprintf("epoch %d", f.Record.Epoch)
	case p.SequenceUnknown != "":
		c.Reason = v1alpha1.ReasonSequenceUnknown
		c.Message = fmt.Sprintf("data version unknown for %s. To seed from one anyway, and lose data that only others have: "+
			"kubectl -n %s annotate rss %s %s=<pod>", p.SequenceUnknown, f.Set.Namespace, f.Set.Name, v1alpha1.AnnotationSeedFrom)
	case slices.ContainsFunc(f.Record.Failures, failedSeed):
		c.Reason, c.Message = v1alpha1.ReasonSeedFailed, "the newest copy could not be started; "+whyNotSeeded(p)
	default:
		c.Reason, c.Message = v1alpha1.ReasonNotSeeded, whyNotSeeded(p)
	}
	return c
}

// whyNotSeeded states why no member is started as the first primary.
func whyNotSeeded(p *rules.Plan) string {
	switch {
	case p.Waiting.Message != "":
		return p.Waiting.Message
	case p.On.Record.Epoch > 0:
		return fmt.Sprintf(
			"the primary of epoch %d has stopped, and the next primary is being chosen",
			p.On.Record.Epoch,
		)
	}
	return "no member has been started yet"
}

// dataLossRisk returns condition DataLossRisk: whether the newest known copy is missing or unknown.
func dataLossRisk(p *rules.Plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDataLossRisk, Status: metav1.ConditionTrue}
	switch {
	case p.Risk != "":
		c.Reason, c.Message = v1alpha1.ReasonNewestMissing, p.Risk+"; no member is started until that copy is available, or annotation "+v1alpha1.AnnotationSeedFrom+" names another member"
	case p.SequenceUnknown != "":
		c.Reason, c.Message = v1alpha1.ReasonSequenceUnknown, "data version unknown for "+p.SequenceUnknown
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
func uncomparedOf(p *rules.Plan) string {
	if p.Uncompared != "" {
		return p.Uncompared
	}
	was := meta.FindStatusCondition(p.On.Set.Status.Conditions, v1alpha1.ConditionDataLossRisk)
	if was == nil || was.Reason != v1alpha1.ReasonPrimaryNotCompared || !strings.HasPrefix(was.Message, rules.BeginningOf(p.Record.Epoch)) {
		return ""
	}
	return was.Message
}

// paused returns condition Paused.
func paused(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}
	switch {
	case f.Set.Spec.Paused:
		c.Reason, c.Message = v1alpha1.ReasonPausedByUser, "spec.paused is true: no command is run, and the number of pods does not change"
	case f.TooFew():
		c.Reason = v1alpha1.ReasonReplicasTooLow
		c.Message = fmt.Sprintf(
			"Replica count (%d) for %s is too low (should be %d or higher)",
			ptr.Deref(f.Set.Spec.Replicas, 0), spec.StatefulSetName(f.Set), f.Set.Status.RestoreReplicas,
		)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotPaused, "the set is not paused"
	}
	return c
}
