package extendedstatefulset

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
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// notice is the reason and the message of a condition; empty if there is none.
type notice = engine.Notice

// summarize returns the status: the record and the observed state. A condition that did not change
// keeps its transition time.
func summarize(f *facts, p *plan) v1alpha1.ExtendedStatefulSetStatus {
	s := f.record.DeepCopy()
	s.ObservedGeneration = f.set.Generation
	s.CurrentRevision, s.UpdateRevision = revisionName(s.CurrentVersion, s.CurrentDigest), updateRevision(s)
	if s.Versions = nil; len(f.children) > 0 {
		s.Versions = map[string]bool{}
	}
	for _, c := range f.children {
		key := strconv.FormatInt(c.version, 10)
		s.Versions[key] = s.Versions[key] || c.anyReady()
	}
	countPods(f, s)
	for _, c := range withKstatus(f, []metav1.Condition{available(f), progressing(f, p), degraded(f, p), stale(f), aborted(f), configMissing(f)}) {
		c.ObservedGeneration, c.LastTransitionTime, c.Message = f.set.Generation, metav1.NewTime(f.now), excerpt.Message(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return *s
}

// firstZone returns the zone that /scale reports. If it reported all zones, an autoscaler would
// multiply the replicas.
func firstZone(zones []zone) zone {
	return slices.MinFunc(zones, func(a, b zone) int { return cmp.Compare(a.index, b.index) })
}

// counts reports whether the pods of a StatefulSet serve: those of the current version, or of every
// version while ordinals move.
func (f *facts) counts(c *child) bool {
	return c.version == f.record.CurrentVersion || moving(f)
}

// countPods sets the numbers of serving pods.
func countPods(f *facts, s *v1alpha1.ExtendedStatefulSetStatus) {
	s.Replicas, s.ReadyReplicas = 0, 0
	for i := range s.Zones {
		s.Zones[i].Replicas, s.Zones[i].ReadyReplicas = 0, 0
	}
	selector := servingLabels(f)
	first := firstZone(f.zones)
	if first.index != noZone {
		selector[v1alpha1.LabelZoneIndex] = strconv.Itoa(int(first.index))
	}
	s.Selector = labels.SelectorFromSet(selector).String()
	for _, z := range f.zones {
		pods, ready := podsIn(f, z)
		if s.ReadyReplicas += ready; z == first {
			s.Replicas = pods
		}
		for i := range s.Zones {
			if s.Zones[i].Name == z.name {
				s.Zones[i].Replicas, s.Zones[i].ReadyReplicas = pods, ready
			}
		}
	}
}

// podsIn returns the number of non-terminating pods of a zone that serve or will serve, and the number
// of its Ready pods.
func podsIn(f *facts, z zone) (pods, ready int32) {
	for _, c := range f.children {
		if c.zone != z.index || !f.counts(c) {
			continue
		}
		ready += c.ready()
		for _, pod := range c.pods {
			if !podstate.Terminating(pod) {
				pods++
			}
		}
	}
	return pods, ready
}

// availableIn returns the number of ordinals of a zone that have an available pod.
func availableIn(f *facts, z zone) (n int32) {
	clock := f.clock()
	for o := range f.replicas {
		serves := func(c *child) bool { return c.zone == z.index && f.counts(c) && clock.available(c.pods[o]) }
		if slices.ContainsFunc(f.children, serves) {
			n++
		}
	}
	return n
}

func available(f *facts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	if f.invalid != "" {
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, "the spec is invalid, and the operator makes no changes: "+f.invalid
		return c
	}
	n, wanted := int32(0), f.replicas*int32(len(f.zones))
	for _, z := range f.zones {
		n += availableIn(f, z)
	}
	c.Message = fmt.Sprintf("%d of %d pods are available", n, wanted)
	if n >= wanted {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllAvailable
		return c
	}
	c.Reason = v1alpha1.ReasonPodsUnavailable
	if number := f.record.CurrentVersion; moving(f) {
		c.Message += unready(f.world, 0)
	} else if number != 0 {
		c.Message += unready(f.world, number)
	}
	return c
}

// operations are the possible reasons of condition Progressing, the most important first. Each returns
// an empty notice if it does not apply.
var operations = []func(*facts, *plan) notice{
	refusedWrite, untracked, withoutConsent, waitingToUpgrade, returning, waitingForApproval, upgrading, cleaningUp, restarting, withoutService, withoutBudget, scaling, waiting, unavailable, unserved,
}

func progressing(f *facts, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse}
	if f.invalid != "" {
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, f.invalid
		return c
	}
	for _, operation := range operations {
		if is := operation(f, p); is.Reason != "" {
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, is.Reason, is.Message+strayApproval(f)
			if f.refused == "" {
				c.Message += unready(f.world, 0)
			}
			return c
		}
	}
	c.Reason, c.Message = v1alpha1.ReasonComplete, "no operation in progress"+strayApproval(f)
	return c
}

// waitingToo returns text followed by the reason for waiting, if there is one.
func (p *plan) waitingToo(text string) string {
	if p.Waiting.Message == "" {
		return text
	}
	return text + "; waiting until " + p.Waiting.Message
}

// undoneWrite reports that an admission webhook or policy reverts writes of the operator.
func undoneWrite(f *facts, _ *plan) notice {
	message := f.undone.Message()
	if message == "" {
		message = undone.Explain(f.unlike(), "the write is not retried before the next version because it could restart pods")
	}
	if message == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonWriteRefused, Message: message}
}

func refusedWrite(f *facts, _ *plan) notice {
	if f.refused == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonWriteRefused, Message: "the API server refuses a write, which will be retried: " + f.refused}
}

func untracked(f *facts, _ *plan) notice {
	if f.untracked == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonWriteRefused, Message: "cannot add or remove owner references because Secrets cannot be read: " + f.untracked +
		"; bind ClusterRole secrets-role of the operator to its account in this namespace (docs/security.md)"}
}

func withoutConsent(f *facts, _ *plan) notice {
	if why := disputed(f.world); why != "" {
		return notice{Reason: v1alpha1.ReasonClaimTaken, Message: why}
	}
	return notice{}
}

// waitingToUpgrade reports that an upgrade has not begun yet.
func waitingToUpgrade(f *facts, p *plan) notice {
	current := f.record.CurrentVersion
	if f.record.Phase != v1alpha1.PhaseWaiting {
		return notice{}
	}
	if still := f.unreturned(); still != "" {
		return notice{Reason: v1alpha1.ReasonReturning, Message: p.waitingToo("returning the ordinals of an earlier upgrade: " + still)}
	}
	return notice{Reason: v1alpha1.ReasonCurrentNotReady, Message: fmt.Sprintf(
		"the upgrade waits until version %d is Ready: %s. %s", current, f.standing(current).unsettled(), upgradeAnyway(f.world))}
}

// upgradeAnyway returns the command that starts an upgrade although pods of the current version are not
// Ready.
func upgradeAnyway(w *world) string {
	return fmt.Sprintf(`To upgrade anyway: kubectl -n %s patch ests %s --type=merge -p '{"spec":{"updateStrategy":{"updateNotReady":true}}}'`,
		w.set.Namespace, w.set.Name)
}

// returning reports that a failed attempt is being rolled back.
func returning(f *facts, p *plan) notice {
	r, u := f.record, f.record.Update
	between := u != nil && u.Returning
	if !between && (r.Phase != v1alpha1.PhaseStale || !f.returning()) {
		return notice{}
	}
	message := p.waitingToo(fmt.Sprintf("attempt %d with version %d failed: %s", r.Attempts, r.UpdateVersion, u.Message))
	if still := cmp.Or(f.unreturned(), f.standing(r.CurrentVersion).notReady()); p.Waiting.Message == "" && still != "" {
		message += "; " + still
	}
	return notice{Reason: v1alpha1.ReasonReturning, Message: message}
}

func upgrading(f *facts, p *plan) notice {
	r, u := f.record, f.record.Update
	if u == nil || givenUp(r) {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonUpgrading, Message: p.waitingToo(fmt.Sprintf("version %d to %d, attempt %d, phase %s%s",
		r.CurrentVersion, r.UpdateVersion, r.Attempts, r.Phase, zone{name: u.Zone, index: zoneIndex(u.Zone)}.in()))}
}

func cleaningUp(f *facts, p *plan) notice {
	if f.record.Phase != v1alpha1.PhaseCleaningUp {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonUpgrading, Message: p.waitingToo(fmt.Sprintf("version %d serves, and StatefulSets of other versions are being deleted", f.record.CurrentVersion))}
}

func configCached(f *facts, _ *plan) notice { return f.config.cached }

func restarting(f *facts, _ *plan) notice { return f.config.restart }

func withoutService(f *facts, p *plan) notice {
	if p.Waiting.Message != "" {
		return notice{}
	}
	return takenService(f, p)
}

func takenService(f *facts, _ *plan) notice {
	taken := foreignService(f)
	if taken == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonServiceTaken, Message: fmt.Sprintf(
		"Service %s does not belong to this object and is ignored, so it may select other pods: choose another name, or delete it so that the operator creates its own: kubectl -n %s delete service %s",
		taken, f.set.Namespace, taken)}
}

func withoutBudget(f *facts, p *plan) notice {
	taken := f.foreignBudget()
	if taken == "" || p.Waiting.Message != "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonBudgetTaken, Message: fmt.Sprintf(
		"PodDisruptionBudget %s does not belong to this object and is ignored, so a drain may evict more pods than spec.podDisruptionBudget allows: delete it so that the operator creates its own: kubectl -n %s delete pdb %s",
		taken, f.set.Namespace, taken)}
}

func scaling(_ *facts, p *plan) notice {
	if !p.changes() {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonScaling, Message: p.waitingToo("updating StatefulSets to match the spec")}
}

func waiting(_ *facts, p *plan) notice {
	if p.Waiting.Message == "" {
		return notice{}
	}
	return notice{Reason: p.Waiting.Reason, Message: "waiting until " + p.Waiting.Message}
}

func unavailable(f *facts, _ *plan) notice {
	if why := f.standing(f.record.CurrentVersion).notReady(); why != "" {
		return notice{Reason: v1alpha1.ReasonWaiting, Message: why}
	}
	return notice{}
}

// unserved reports that a StatefulSet is missing although no operation is in progress. It was deleted,
// and its content is unknown.
func unserved(f *facts, _ *plan) notice {
	for _, z := range f.zones {
		if n := f.record.CurrentVersion; n != 0 && f.children.find(z.index, n) == nil {
			return notice{Reason: v1alpha1.ReasonWaiting, Message: fmt.Sprintf(
				"StatefulSet %s is missing and cannot be recreated because spec.template has changed; the next successful upgrade recreates its pods", childName(f.set.Name, z, n))}
		}
	}
	return notice{}
}

// troubles are the possible reasons of condition Degraded, the most severe first. Each returns an empty
// notice if it does not apply.
var troubles = []func(*facts, *plan) notice{
	invalidSpec, refusedWrite, undoneWrite, withoutConsent, takenService, jobHeld, jobUnknown, configCached, saysTrue(stale), saysTrue(aborted), saysTrue(configMissing), podsHindered,
}

// degraded returns condition Degraded with the most severe problem.
func degraded(f *facts, p *plan) metav1.Condition {
	for _, find := range troubles {
		if found := find(f, p); found.Reason != "" {
			return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: found.Reason, Message: found.Message}
		}
	}
	return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHealthy, Message: "no problems detected"}
}

func invalidSpec(f *facts, _ *plan) notice {
	if f.invalid == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonInvalidSpec, Message: "the spec is invalid, and the operator makes no changes: " + f.invalid}
}

// saysTrue returns a function that returns the reason and the message of a condition while it is True.
func saysTrue(of func(*facts) metav1.Condition) func(*facts, *plan) notice {
	return func(f *facts, _ *plan) notice {
		if c := of(f); c.Status == metav1.ConditionTrue {
			return notice{Reason: c.Reason, Message: c.Message}
		}
		return notice{}
	}
}

// zoneIndex returns an index that is valid only for zone.in.
func zoneIndex(name string) int32 {
	if name == "" {
		return noZone
	}
	return 0
}

func stale(f *facts) metav1.Condition {
	c := metav1.Condition{
		Type:    v1alpha1.ConditionStale,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonHealthy,
		Message: "no version is stale",
	}
	if f.record.Phase == v1alpha1.PhaseStale {
		c.Status, c.Reason = metav1.ConditionTrue, f.record.Update.Reason
		c.Message = fmt.Sprintf("version %d was marked stale (attempts: %d): %s. Version %d serves. To try another version, edit spec.template. To retry the same template after the cause is fixed: %s",
			f.record.UpdateVersion, f.record.Attempts, f.record.Update.Message, f.record.CurrentVersion, again(f.set, f.record.VersionHighWater))
	}
	return c
}

// again returns the command that creates a version of the same template: it changes an annotation of
// the template.
func again(set *v1alpha1.ExtendedStatefulSet, highest int64) string {
	return fmt.Sprintf(`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"again":"%d"}}}}}'`,
		set.Namespace, set.Name, highest)
}

func aborted(f *facts) metav1.Condition {
	c := metav1.Condition{
		Type:    v1alpha1.ConditionAborted,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonHealthy,
		Message: "no Job aborted an upgrade",
	}
	u := f.record.Update
	if givenUp(f.record) && (f.record.Phase == v1alpha1.PhaseAborted || u.Reason == v1alpha1.ReasonPostJobFailed) {
		c.Status, c.Reason = metav1.ConditionTrue, u.Reason
		c.Message = fmt.Sprintf("the upgrade to version %d was aborted: %s. Version %d serves. To try another version, edit spec.template",
			f.record.UpdateVersion, u.Message, f.record.CurrentVersion)
	}
	return c
}

func configMissing(f *facts) metav1.Condition {
	c := metav1.Condition{
		Type:    v1alpha1.ConditionConfigMissing,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonConfigFound,
		Message: "all required ConfigMaps and Secrets exist",
	}
	if !f.set.Spec.UpdateOnEnvChange {
		c.Reason, c.Message = v1alpha1.ReasonConfigNotFollowed, "configuration is not tracked because spec.updateOnEnvChange is false"
		return c
	}
	if names := slices.Sorted(maps.Keys(f.config.missing)); len(names) > 0 {
		first := f.config.missing[names[0]]
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, first.Reason, first.Message
	}
	return c
}

// recordLine describes a new status whose record changed; "" if only the observed state changed.
func recordLine(was, now *v1alpha1.ExtendedStatefulSetStatus) string {
	if sameRecord(was, now) {
		return ""
	}
	line := fmt.Sprintf("%s, version %d", now.Phase, now.CurrentVersion)
	if u := now.Update; u != nil {
		line += fmt.Sprintf(" to %d, attempt %d%s", now.UpdateVersion, now.Attempts, zone{u.Zone, zoneIndex(u.Zone)}.in())
		if u.Returning || givenUp(now) {
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
