package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// Summarize returns the status: the record and the observed state. A condition that did not change
// keeps its transition time.
func Summarize(f *facts.Facts, p *rules.Plan) v1alpha1.ExtendedStatefulSetStatus {
	s := f.Record.DeepCopy()
	s.ObservedGeneration = f.Set.Generation
	s.CurrentRevision, s.UpdateRevision = record.RevisionName(s.CurrentVersion, s.CurrentDigest), record.UpdateRevision(s)
	if s.Versions = nil; len(f.Children) > 0 {
		s.Versions = map[string]bool{}
	}
	for _, c := range f.Children {
		key := strconv.FormatInt(c.Version, 10)
		s.Versions[key] = s.Versions[key] || c.AnyReady()
	}
	countPods(f, s)
	for _, c := range withKstatus(f, []metav1.Condition{available(f), Progressing(f, p), Degraded(f, p), stale(f), aborted(f), ConfigMissing(f)}) {
		c.ObservedGeneration, c.LastTransitionTime, c.Message = f.Set.Generation, metav1.NewTime(f.Now), excerpt.Message(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return *s
}

// firstZone returns the zone that /scale reports. If it reported all zones, an autoscaler would
// multiply the replicas.
func firstZone(zones []children.Zone) children.Zone {
	return slices.MinFunc(zones, func(a, b children.Zone) int { return cmp.Compare(a.Index, b.Index) })
}

// isSelected reports whether the active Service selects the pods of a StatefulSet, as ServingLabels does:
// those of the current version, or of every version while ordinals move.
func isSelected(f *facts.Facts, c *facts.Child) bool {
	return c.Version == f.Record.CurrentVersion || rules.Moving(f)
}

// countPods sets the numbers of pods that the active Service selects, and the selector for /scale.
func countPods(f *facts.Facts, s *v1alpha1.ExtendedStatefulSetStatus) {
	s.Replicas, s.ReadyReplicas = 0, 0
	for i := range s.Zones {
		s.Zones[i].Replicas, s.Zones[i].ReadyReplicas = 0, 0
	}
	selector := rules.ServingLabels(f)
	first := firstZone(f.Zones)
	if first.Index != children.NoZone {
		selector[v1alpha1.LabelZoneIndex] = strconv.Itoa(int(first.Index))
	}
	s.Selector = labels.SelectorFromSet(selector).String()
	for _, z := range f.Zones {
		pods, ready := podsIn(f, z)
		if s.ReadyReplicas += ready; z == first {
			s.Replicas = pods
		}
		for i := range s.Zones {
			if s.Zones[i].Name == z.Name {
				s.Zones[i].Replicas, s.Zones[i].ReadyReplicas = pods, ready
			}
		}
	}
}

// podsIn returns the number of non-terminating pods of a zone that serve or will serve, and the number
// of its Ready pods.
func podsIn(f *facts.Facts, z children.Zone) (pods, ready int32) {
	for _, c := range f.Children {
		if c.Zone != z.Index || !isSelected(f, c) {
			continue
		}
		ready += c.Ready()
		for _, pod := range c.Pods {
			if !podstate.Terminating(pod) {
				pods++
			}
		}
	}
	return pods, ready
}

// availableIn returns the number of ordinals of a zone that have an available pod.
func availableIn(f *facts.Facts, z children.Zone) (n int32) {
	clock := f.Clock()
	for o := range f.Replicas {
		serves := func(c *facts.Child) bool { return c.Zone == z.Index && isSelected(f, c) && clock.Available(c.Pods[o]) }
		if slices.ContainsFunc(f.Children, serves) {
			n++
		}
	}
	return n
}

// available returns condition Available.
func available(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	if f.Invalid != "" {
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, "the spec is invalid, and the operator makes no changes: "+f.Invalid
		return c
	}
	n, wanted := int32(0), f.Replicas*int32(len(f.Zones))
	for _, z := range f.Zones {
		n += availableIn(f, z)
	}
	c.Message = fmt.Sprintf("%d of %d pods are available", n, wanted)
	if n >= wanted {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllAvailable
		return c
	}
	c.Reason = v1alpha1.ReasonPodsUnavailable
	if number := f.Record.CurrentVersion; rules.Moving(f) {
		c.Message += facts.Unready(f.World, 0)
	} else if number != 0 {
		c.Message += facts.Unready(f.World, number)
	}
	return c
}

// operations are the possible reasons of condition Progressing, the most important first. Each returns
// an empty notice if it does not apply.
var operations = []func(*facts.Facts, *rules.Plan) facts.Notice{
	refusedWrite, untracked, withoutConsent, waitingToUpgrade, returning, waitingForApproval, upgrading, cleaningUp, restarting, withoutService, withoutBudget, scaling, waiting, unavailable, missingChild,
}

// Progressing returns condition Progressing with the most important operation.
func Progressing(f *facts.Facts, p *rules.Plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse}
	if f.Invalid != "" {
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, f.Invalid
		return c
	}
	found := firstNotice(operations, f, p)
	if found.Message == "" {
		c.Reason, c.Message = v1alpha1.ReasonComplete, "no operation in progress"+strayApproval(f)
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, found.Reason, found.Message+strayApproval(f)
	if f.Refused == "" {
		c.Message += facts.Unready(f.World, 0)
	}
	return c
}

// firstNotice returns the first notice of the checks; empty if no check finds anything.
func firstNotice(checks []func(*facts.Facts, *rules.Plan) facts.Notice, f *facts.Facts, p *rules.Plan) facts.Notice {
	return engine.First(checks, func(check func(*facts.Facts, *rules.Plan) facts.Notice) facts.Notice { return check(f, p) })
}

// undoneWrite reports that an admission webhook or policy reverts writes of the operator.
func undoneWrite(f *facts.Facts, _ *rules.Plan) facts.Notice {
	message := f.Undone.Message()
	if message == "" {
		message = undone.Explain(rules.Unlike(f), "the write is not retried before the next version because it could restart pods")
	}
	if message == "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonWriteRefused, Message: message}
}

// refusedWrite reports that the last write of the operator failed.
func refusedWrite(f *facts.Facts, _ *rules.Plan) facts.Notice {
	if f.Refused == "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonWriteRefused, Message: "the API server refuses a write, which will be retried: " + f.Refused}
}

// untracked reports that the owner references on Secrets cannot be managed.
func untracked(f *facts.Facts, _ *rules.Plan) facts.Notice {
	if f.Untracked == "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonWriteRefused, Message: "cannot add or remove owner references because Secrets cannot be read: " + f.Untracked +
		"; bind ClusterRole secrets-role of the operator to its account in this namespace (docs/security.md)"}
}

// withoutConsent reports claims of other owners.
func withoutConsent(f *facts.Facts, _ *rules.Plan) facts.Notice {
	if why := facts.Disputed(f.World); why != "" {
		return facts.Notice{Reason: v1alpha1.ReasonClaimTaken, Message: why}
	}
	return facts.Notice{}
}

// waitingToUpgrade reports that an upgrade has not begun yet.
func waitingToUpgrade(f *facts.Facts, p *rules.Plan) facts.Notice {
	current := f.Record.CurrentVersion
	if f.Record.Phase != v1alpha1.PhaseWaiting {
		return facts.Notice{}
	}
	if still := f.Unreturned(); still != "" {
		return facts.Notice{Reason: v1alpha1.ReasonReturning, Message: p.WaitingToo("returning the ordinals of an earlier upgrade: " + still)}
	}
	return facts.Notice{Reason: v1alpha1.ReasonCurrentNotReady, Message: fmt.Sprintf(
		"the upgrade waits until version %d is Ready: %s. %s", current, f.Standing(current).Unsettled(), upgradeAnyway(f.World))}
}

// upgradeAnyway returns the command that starts an upgrade although pods of the current version are not
// Ready.
func upgradeAnyway(w *facts.World) string {
	return fmt.Sprintf(`To upgrade anyway: kubectl -n %s patch ests %s --type=merge -p '{"spec":{"updateStrategy":{"updateNotReady":true}}}'`,
		w.Set.Namespace, w.Set.Name)
}

// returning reports that a failed attempt is being rolled back.
func returning(f *facts.Facts, p *rules.Plan) facts.Notice {
	r, u := f.Record, f.Record.Update
	betweenAttempts := u != nil && u.Returning
	if !betweenAttempts && (r.Phase != v1alpha1.PhaseStale || !f.Returning()) {
		return facts.Notice{}
	}
	message := p.WaitingToo(fmt.Sprintf("attempt %d with version %d failed: %s", r.Attempts, r.UpdateVersion, u.Message))
	if still := cmp.Or(f.Unreturned(), f.Standing(r.CurrentVersion).NotReady()); p.Waiting.Message == "" && still != "" {
		message += "; " + still
	}
	return facts.Notice{Reason: v1alpha1.ReasonReturning, Message: message}
}

// upgrading reports an upgrade in progress.
func upgrading(f *facts.Facts, p *rules.Plan) facts.Notice {
	r, u := f.Record, f.Record.Update
	if u == nil || facts.GivenUp(r) {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonUpgrading, Message: p.WaitingToo(fmt.Sprintf("version %d to %d, attempt %d, phase %s%s",
		r.CurrentVersion, r.UpdateVersion, r.Attempts, r.Phase, children.InZone(u.Zone)))}
}

// cleaningUp reports that the StatefulSets of other versions are being deleted after an upgrade.
func cleaningUp(f *facts.Facts, p *rules.Plan) facts.Notice {
	if f.Record.Phase != v1alpha1.PhaseCleaningUp {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonUpgrading, Message: p.WaitingToo(fmt.Sprintf("version %d serves, and StatefulSets of other versions are being deleted", f.Record.CurrentVersion))}
}

// configCached reports pods that may have old content of an immutable ConfigMap or Secret.
func configCached(f *facts.Facts, _ *rules.Plan) facts.Notice { return f.Config.Cached }

// restarting reports a pending restart of pods because of a configuration change.
func restarting(f *facts.Facts, _ *rules.Plan) facts.Notice { return f.Config.Restart }

// withoutService reports that the active Service belongs to another owner, unless the set waits for
// something.
func withoutService(f *facts.Facts, p *rules.Plan) facts.Notice {
	if p.Waiting.Message != "" {
		return facts.Notice{}
	}
	return takenService(f, p)
}

// takenService reports that the active Service belongs to another owner.
func takenService(f *facts.Facts, _ *rules.Plan) facts.Notice {
	taken := rules.ForeignService(f)
	if taken == "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonServiceTaken, Message: fmt.Sprintf(
		"Service %s does not belong to this object and is ignored, so it may select other pods: choose another name, or delete it so that the operator creates its own: kubectl -n %s delete service %s",
		taken, f.Set.Namespace, taken)}
}

// withoutBudget reports that a PodDisruptionBudget belongs to another owner, unless the set waits for
// something.
func withoutBudget(f *facts.Facts, p *rules.Plan) facts.Notice {
	taken := f.ForeignBudget()
	if taken == "" || p.Waiting.Message != "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonBudgetTaken, Message: fmt.Sprintf(
		"PodDisruptionBudget %s does not belong to this object and is ignored, so a drain may evict more pods than spec.podDisruptionBudget allows: delete it so that the operator creates its own: kubectl -n %s delete pdb %s",
		taken, f.Set.Namespace, taken)}
}

// scaling reports that this pass changes something, and no other operation explains it.
func scaling(_ *facts.Facts, p *rules.Plan) facts.Notice {
	if !p.Changes() {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonScaling, Message: p.WaitingToo("updating StatefulSets to match the spec")}
}

// waiting reports the event that the plan waits for.
func waiting(_ *facts.Facts, p *rules.Plan) facts.Notice {
	if p.Waiting.Message == "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: p.Waiting.Reason, Message: "waiting until " + p.Waiting.Message}
}

// unavailable reports that pods of the current version are not available.
func unavailable(f *facts.Facts, _ *rules.Plan) facts.Notice {
	if why := f.Standing(f.Record.CurrentVersion).NotReady(); why != "" {
		return facts.Notice{Reason: v1alpha1.ReasonWaiting, Message: why}
	}
	return facts.Notice{}
}

// missingChild reports that a StatefulSet of the current version is missing and cannot be recreated: it
// was deleted, and the template no longer has its content.
func missingChild(f *facts.Facts, _ *rules.Plan) facts.Notice {
	for _, z := range f.Zones {
		if n := f.Record.CurrentVersion; n != 0 && f.Children.Find(z.Index, n) == nil {
			return facts.Notice{Reason: v1alpha1.ReasonWaiting, Message: fmt.Sprintf(
				"StatefulSet %s is missing and cannot be recreated because spec.template has changed; the next successful upgrade recreates its pods", children.ChildName(f.Set.Name, z, n))}
		}
	}
	return facts.Notice{}
}

// problems are the possible reasons of condition Degraded, the most severe first. Each returns an empty
// notice if it does not apply.
var problems = []func(*facts.Facts, *rules.Plan) facts.Notice{
	invalidSpec, refusedWrite, undoneWrite, withoutConsent, takenService, jobHeld, jobUnknown, configCached, whileTrue(stale), whileTrue(aborted), whileTrue(ConfigMissing), podsHindered,
}

// Degraded returns condition Degraded with the most severe problem.
func Degraded(f *facts.Facts, p *rules.Plan) metav1.Condition {
	if found := firstNotice(problems, f, p); found.Message != "" {
		return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: found.Reason, Message: found.Message}
	}
	return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHealthy, Message: "no problems detected"}
}

// invalidSpec reports that the spec cannot be served.
func invalidSpec(f *facts.Facts, _ *rules.Plan) facts.Notice {
	if f.Invalid == "" {
		return facts.Notice{}
	}
	return facts.Notice{Reason: v1alpha1.ReasonInvalidSpec, Message: "the spec is invalid, and the operator makes no changes: " + f.Invalid}
}

// whileTrue returns a problem that has the reason and the message of another condition while that is
// True.
func whileTrue(of func(*facts.Facts) metav1.Condition) func(*facts.Facts, *rules.Plan) facts.Notice {
	return func(f *facts.Facts, _ *rules.Plan) facts.Notice {
		if c := of(f); c.Status == metav1.ConditionTrue {
			return facts.Notice{Reason: c.Reason, Message: c.Message}
		}
		return facts.Notice{}
	}
}

// stale returns condition Stale.
func stale(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{
		Type:    v1alpha1.ConditionStale,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonHealthy,
		Message: "no version is stale",
	}
	if f.Record.Phase == v1alpha1.PhaseStale {
		c.Status, c.Reason = metav1.ConditionTrue, f.Record.Update.Reason
		c.Message = fmt.Sprintf("version %d was marked stale (attempts: %d): %s. Version %d serves. To try another version, edit spec.template. To retry the same template after the cause is fixed: %s",
			f.Record.UpdateVersion, f.Record.Attempts, f.Record.Update.Message, f.Record.CurrentVersion, again(f.Set, f.Record.VersionHighWater))
	}
	return c
}

// again returns the command that creates a version of the same template: it changes an annotation of
// the template.
func again(set *v1alpha1.ExtendedStatefulSet, highest int64) string {
	return fmt.Sprintf(`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"again":"%d"}}}}}'`,
		set.Namespace, set.Name, highest)
}

// aborted returns condition Aborted. It is also True if the Job after the upgrade failed.
func aborted(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{
		Type:    v1alpha1.ConditionAborted,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonHealthy,
		Message: "no Job aborted an upgrade",
	}
	u := f.Record.Update
	if facts.GivenUp(f.Record) && (f.Record.Phase == v1alpha1.PhaseAborted || u.Reason == v1alpha1.ReasonPostJobFailed) {
		c.Status, c.Reason = metav1.ConditionTrue, u.Reason
		c.Message = fmt.Sprintf("the upgrade to version %d was aborted: %s. Version %d serves. To try another version, edit spec.template",
			f.Record.UpdateVersion, u.Message, f.Record.CurrentVersion)
	}
	return c
}

// ConfigMissing returns condition ConfigMissing.
func ConfigMissing(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{
		Type:    v1alpha1.ConditionConfigMissing,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonConfigFound,
		Message: "all required ConfigMaps and Secrets exist",
	}
	if !f.Set.Spec.UpdateOnEnvChange {
		c.Reason, c.Message = v1alpha1.ReasonConfigNotFollowed, "configuration is not tracked because spec.updateOnEnvChange is false"
		return c
	}
	if names := slices.Sorted(maps.Keys(f.Config.Missing)); len(names) > 0 {
		first := f.Config.Missing[names[0]]
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, first.Reason, first.Message
	}
	return c
}

// RecordLine describes a change of the record from was to now, for the log and golden files; "" if only
// the observed state changed.
func RecordLine(was, now *v1alpha1.ExtendedStatefulSetStatus) string {
	if record.SameRecord(was, now) {
		return ""
	}
	line := fmt.Sprintf("%s, version %d", now.Phase, now.CurrentVersion)
	if u := now.Update; u != nil {
		line += fmt.Sprintf(" to %d, attempt %d%s", now.UpdateVersion, now.Attempts, children.InZone(u.Zone))
		if u.Returning || facts.GivenUp(now) {
			line += ", " + u.Reason
		}
		switch {
		case u.HeldAt != nil:
			line += ", waiting for approval"
		case u.GoodAt != nil:
			line += ", canaries are good"
		}
		for _, job := range []*v1alpha1.JobStatus{u.PreJob, u.CanaryJob, u.PostJob} {
			if job != nil {
				line += fmt.Sprintf(", %s %s", job.Name, cmp.Or(job.Result, "is known"))
			}
		}
	}
	return line
}
