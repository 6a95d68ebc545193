package rules

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// grantNext grants the next pod if no pod may be running. This is safe with two operators,
// because the object was read before the pods. If the other operator named a holder after the
// object was read, the object's resourceVersion has changed, and the first write here fails.
// If it did so before, the object names the holder, and that pod is a blocker.
func grantNext(f *facts.Facts, p *Plan) {
	next, after := grantee(f)
	p.LookAgain(after)
	if next == nil {
		return
	}
	p.Do(grantChain(f, next)...)
}

// grantee returns the pod that is granted in this pass; nil if none is. Otherwise it is as Next.
func grantee(f *facts.Facts) (next *facts.Member, after time.Duration) {
	blocked := len(f.Blockers) > 0 || f.UnseenHolder() != ""
	if blocked || len(f.Waiting) == 0 || !f.Grants() {
		return nil, 0
	}
	return Next(f)
}

// grantChain returns the writes of a grant: the holder in the status, the Lease if there is one, and the
// annotation. A leased pod starts by the Lease, and needs none. If there is a Lease, an interrupted grant repeats
// the first write: the Lease may have been handed over after the object was read (decision 0052).
func grantChain(f *facts.Facts, m *facts.Member) []action.Chain {
	if m.Leased && f.Lease == nil {
		return nil // rule maintainLease creates it
	}
	epoch := f.Epoch() + 1
	chain := action.Chain{nameHolder(f, m, epoch, reasonHolder)}
	if f.Lease != nil {
		chain = append(chain, assignLease(f, m, epoch))
	}
	if !m.Leased {
		chain = append(chain, Grant(m, epoch))
	}
	return []action.Chain{chain}
}

// completeGrant makes the second write for a holder without a grant, if the pass that named it
// was interrupted. No other pod becomes the holder while that pod can still be granted,
// because the operator that named it may still do so.
func completeGrant(f *facts.Facts, p *Plan) {
	for _, m := range f.Blockers {
		if !m.Holder || !m.Lives() || m.HasTurn() {
			continue
		}
		usesLease := m.Leased || f.Lease != nil
		othersRun := len(f.Blockers) > 1 || f.UnseenHolder() != ""
		switch {
		case !usesLease:
			p.Do(action.Chain{Grant(m, f.Object.Status.Holder.Epoch)})
		case !othersRun:
			p.Do(grantChain(f, m)...)
		}
	}
}

// adopt makes a granted pod the holder if there is no other holder that may run: the object
// was deleted and recreated, and the pod has the grant of the earlier one.
func adopt(f *facts.Facts, p *Plan) {
	if f.Object == nil || f.OlderRival() != nil || f.ReleasesAll() {
		return
	}
	if holder := leaseHolder(f.Blockers); holder != nil && !holder.Holder && !f.HolderIsPending() {
		p.Do(action.Chain{nameHolder(f, holder, f.LeaseEpoch(), reasonAdopt)})
		return
	}
	if slices.ContainsFunc(f.Blockers, func(m *facts.Member) bool { return m.Holder }) {
		return
	}
	if oldest := oldestGranted(f.Blockers); oldest != nil {
		p.Do(action.Chain{nameHolder(f, oldest, max(f.Epoch(), 1), reasonAdopt)})
	}
}

// leaseHolder returns the pod that the Lease names; nil if there is none.
func leaseHolder(members []*facts.Member) *facts.Member {
	for _, m := range members {
		if m.HoldsLease {
			return m
		}
	}
	return nil
}

// oldestGranted returns the oldest pod with a grant; nil if there is none.
func oldestGranted(members []*facts.Member) *facts.Member {
	var oldest *facts.Member
	for _, m := range members {
		if !m.Granted() {
			continue
		}
		if oldest == nil || m.Pod.CreationTimestamp.Before(&oldest.Pod.CreationTimestamp) {
			oldest = m
		}
	}
	return oldest
}

// nameHolder returns the first write of a grant, which sets status.holder. It is the lock.
func nameHolder(f *facts.Facts, m *facts.Member, epoch int64, reason string) action.Action {
	object := f.Object.DeepCopy()
	since := metav1.NewTime(f.Now)
	object.Status.Holder = &v1.Holder{Name: m.Name(), UID: m.Pod.UID, Node: m.Pod.Spec.NodeName, Since: &since, Epoch: epoch}
	if f.Lease != nil {
		object.Status.Holder.Lease = f.Lease.Name
	}
	return action.Action{Verb: action.PatchStatus, Object: object, From: f.Object, Reason: reason,
		Detail: fmt.Sprintf("%s, epoch %d", m.Name(), epoch)}
}

// Grant returns the second write of a grant. It atomically sets the annotation that starts
// the program, and the finalizer that keeps the pod visible until it has stopped.
func Grant(m *facts.Member, epoch int64) action.Action {
	pod := m.Pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationGrant, children.GrantOf(pod.UID, epoch))
	controllerutil.AddFinalizer(pod, v1.FinalizerPod)
	return action.Action{Verb: action.Patch, Object: pod, From: m.Pod, Unchanged: true, Reason: ReasonGrant,
		Detail: epochDetail(epoch)}
}

// epochDetail returns the detail of an action for the grant with that epoch.
func epochDetail(epoch int64) string { return fmt.Sprintf("epoch %d", epoch) }

// protect adds our finalizer to all pods that may be running, to keep them visible until they
// have stopped. It adds none if the object is being deleted and is no longer needed: the
// programs that run then keep running unobserved.
func protect(f *facts.Facts, p *Plan) {
	if f.Object == nil {
		return
	}
	if f.Deleting() && !IsNeeded(f) {
		return
	}
	var chains []action.Chain
	for _, m := range f.Blockers {
		if !m.NeedsFinalizer() {
			continue
		}
		pod := m.Pod.DeepCopy()
		controllerutil.AddFinalizer(pod, v1.FinalizerPod)
		metav1.SetMetaDataLabel(&pod.ObjectMeta, v1.LabelSingleton, f.Object.Name) // finds it without the object
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: pod, From: m.Pod, Reason: ReasonProtect}})
	}
	p.Do(chains...)
}

// unprotectStopped removes our finalizer from pods that have stopped, or that can no longer run
// because their machine is off.
func unprotectStopped(f *facts.Facts, p *Plan) {
	var chains []action.Chain
	next, _ := grantee(f)
	for _, m := range f.Pods {
		if m.Standing != facts.Out || !m.Protected() {
			continue
		}
		chain := action.Chain{Unprotect(m, ReasonRelease)}
		if m.HoldsLease && next == nil { // a grant writes the Lease, too
			chain = append(action.Chain{freeLease(f, m)}, chain...)
		}
		chains = append(chains, chain)
	}
	p.Do(chains...)
}

// Unprotect returns the patch that removes our finalizer. If the reason is that the pod has
// stopped, the patch applies to any version of the pod, because a stopped pod does not start
// again. With ReasonLetGo it requires the version that was read.
func Unprotect(m *facts.Member, reason string) action.Action {
	pod := m.Pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1.FinalizerPod)
	if reason == ReasonLetGo {
		m.ReturnTo(pod)
	}
	return action.Action{Verb: action.Patch, Object: pod, From: m.Pod, Unchanged: reason == ReasonLetGo, Reason: reason}
}

// repairReadiness sets the readiness condition of the holder to True, and that of waiting
// pods to False.
func repairReadiness(f *facts.Facts, p *Plan) {
	var chains []action.Chain
	for _, m := range f.Blockers {
		if m.Holder && m.HasTurn() && !m.Ready() {
			chains = append(chains, action.Chain{readiness(f, m, corev1.ConditionTrue)})
		}
	}
	for _, m := range f.Waiting {
		if m.Ready() {
			chains = append(chains, action.Chain{readiness(f, m, corev1.ConditionFalse)})
		}
	}
	p.Do(chains...)
}

// readiness returns the action that sets our readiness condition of a pod.
func readiness(f *facts.Facts, m *facts.Member, status corev1.ConditionStatus) action.Action {
	return action.Action{Verb: action.SetCondition, Object: withReadiness(m.Pod, status, f.Now), From: m.Pod, Reason: reasonReady,
		Detail: string(status)}
}

// remind patches the holder again, so that its kubelet refreshes its volumes. If the
// kubelet was refreshing them when the grant came, it marks them as refreshed although they
// are outdated (volumemanager/cache, AddPodToVolume resets remountRequired). The program
// would then wait for the next sync, a minute later.
func remind(f *facts.Facts, p *Plan) {
	for _, m := range f.Blockers {
		if !m.Holder || !m.MayMissGrant() {
			continue
		}
		since := f.Object.Status.Holder.Since
		if since == nil {
			continue
		}
		if wait := since.Add(spec.RemindAfter).Sub(f.Now); wait > 0 {
			p.LookAgain(wait)
			continue
		}
		pod := m.Pod.DeepCopy()
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationReminder, m.Reminder())
		p.Do(action.Chain{{Verb: action.Patch, Object: pod, From: m.Pod, Reason: reasonRemind, Detail: epochDetail(m.Epoch())}})
	}
}
