package statefulsingleton

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// grantNext grants the next pod if no pod may be running. The object was read before the
// pods. If another operator granted a pod after the object was read, the object's
// resourceVersion has changed, and the first write here fails. If it did so before, the
// pods show it.
func grantNext(f *facts, p *plan) {
	blocked := len(f.blockers) > 0
	if blocked || len(f.waiting) == 0 || !f.grants() {
		return
	}
	next, after := f.next()
	p.LookAgain(after)
	if next == nil {
		return
	}
	p.Do(action.Chain{
		nameHolder(f, next, f.epoch()+1, reasonHolder),
		grant(next, f.epoch()+1),
	})
}

// completeGrant repeats the second write for a holder without a grant. The holder is never
// replaced while that pod lives, because the operator that named it may still grant it.
func completeGrant(f *facts, p *plan) {
	for _, m := range f.blockers {
		if m.holder && m.lives() && !m.granted() {
			p.Do(action.Chain{grant(m, f.object.Status.Holder.Epoch)})
		}
	}
}

// adopt makes an already granted pod the holder if the named holder is gone: an object of
// this name was deleted and recreated.
func adopt(f *facts, p *plan) {
	if f.object == nil || f.elder() != nil || f.releasesAll() {
		return
	}
	if slices.ContainsFunc(f.blockers, func(m *member) bool { return m.holder }) {
		return
	}
	if oldest := oldestGranted(f.blockers); oldest != nil {
		p.Do(action.Chain{nameHolder(f, oldest, max(f.epoch(), 1), reasonAdopt)})
	}
}

// oldestGranted returns the oldest pod with a grant; nil if there is none.
func oldestGranted(members []*member) *member {
	var oldest *member
	for _, m := range members {
		if !m.granted() {
			continue
		}
		if oldest == nil || m.pod.CreationTimestamp.Before(&oldest.pod.CreationTimestamp) {
			oldest = m
		}
	}
	return oldest
}

// nameHolder returns the first write of a grant, which is the lock.
func nameHolder(f *facts, m *member, epoch int64, reason string) action.Action {
	object := f.object.DeepCopy()
	since := metav1.NewTime(f.now)
	object.Status.Holder = &v1.Holder{Name: m.name(), UID: m.pod.UID, Node: m.pod.Spec.NodeName, Since: &since, Epoch: epoch}
	return action.Action{Verb: action.PatchStatus, Object: object, From: f.object, Reason: reason,
		Detail: fmt.Sprintf("%s, epoch %d", m.name(), epoch)}
}

// grant returns the second write of a grant. It atomically sets the annotation that starts
// the program, and the finalizer that keeps the pod visible until it has stopped.
func grant(m *member, epoch int64) action.Action {
	pod := m.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationGrant, grantOf(pod.UID, epoch))
	controllerutil.AddFinalizer(pod, v1.FinalizerPod)
	return action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: true, Reason: reasonGrant,
		Detail: epochDetail(epoch)}
}

func epochDetail(epoch int64) string { return fmt.Sprintf("epoch %d", epoch) }

// protect adds our finalizer to all pods that may be running, to keep them visible. Pods
// that keep running when a deleted object is gone are no longer watched.
func protect(f *facts, p *plan) {
	if f.object == nil {
		return
	}
	if f.deleting() && !f.isNeeded() {
		return
	}
	var chains []action.Chain
	for _, m := range f.blockers {
		if !m.needsFinalizer() {
			continue
		}
		pod := m.pod.DeepCopy()
		controllerutil.AddFinalizer(pod, v1.FinalizerPod)
		metav1.SetMetaDataLabel(&pod.ObjectMeta, v1.LabelSingleton, f.object.Name) // finds it without the object
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonProtect}})
	}
	p.Do(chains...)
}

// needsFinalizer reports whether a blocker still needs our finalizer.
func (m *member) needsFinalizer() bool {
	switch {
	case m.protected():
		return false
	case m.terminating(): // the API server rejects new finalizers on it
		return false
	case isMirror(m.pod): // it belongs to its kubelet
		return false
	case m.holder && !m.granted(): // the finalizer is added with the grant
		return false
	}
	return true
}

// release removes our finalizer from pods that have stopped or are fenced.
func release(f *facts, p *plan) {
	var chains []action.Chain
	for _, m := range f.pods {
		if m.standing == out && m.protected() {
			chains = append(chains, action.Chain{unprotect(m, reasonRelease)})
		}
	}
	p.Do(chains...)
}

// unprotect returns the patch that removes our finalizer. A proof that a pod has stopped
// stays valid. The deletion of its object is valid only for the version that was read, so
// in this case the patch requires it.
func unprotect(m *member, reason string) action.Action {
	pod := m.pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1.FinalizerPod)
	if reason == reasonLetGo {
		m.returnTo(pod)
	}
	return action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: reason == reasonLetGo, Reason: reason}
}

// repairReadiness sets the readiness condition of the holder to True, and that of waiting
// pods to False.
func repairReadiness(f *facts, p *plan) {
	var chains []action.Chain
	for _, m := range f.blockers {
		if m.holder && m.granted() && !m.ready() {
			chains = append(chains, action.Chain{readiness(f, m, corev1.ConditionTrue)})
		}
	}
	for _, m := range f.waiting {
		if m.ready() {
			chains = append(chains, action.Chain{readiness(f, m, corev1.ConditionFalse)})
		}
	}
	p.Do(chains...)
}

func readiness(f *facts, m *member, status corev1.ConditionStatus) action.Action {
	return action.Action{Verb: action.SetCondition, Object: withReadiness(m.pod, status, f.now), From: m.pod, Reason: reasonReady,
		Detail: string(status)}
}

// remind patches the holder again, so that its kubelet refreshes its volumes. If the
// kubelet was refreshing them when the grant came, it marks them as refreshed although they
// are outdated (volumemanager/cache, AddPodToVolume resets remountRequired). The program
// would then wait for the next sync, a minute later.
func remind(f *facts, p *plan) {
	for _, m := range f.blockers {
		if !m.holder || !m.mayMissGrant() {
			continue
		}
		since := f.object.Status.Holder.Since
		if since == nil {
			continue
		}
		if wait := since.Add(remindAfter).Sub(f.now); wait > 0 {
			p.LookAgain(wait)
			continue
		}
		pod := m.pod.DeepCopy()
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationReminder, m.reminder())
		p.Do(action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonRemind, Detail: epochDetail(m.epoch())}})
	}
}

// mayMissGrant reports whether the kubelet has not been reminded of the pod's grant.
func (m *member) mayMissGrant() bool {
	if !m.gated || !m.granted() || !m.lives() {
		return false
	}
	return m.pod.Annotations[v1.AnnotationReminder] != m.reminder()
}

// reminder returns the value of the annotation that reminds of the pod's grant.
func (m *member) reminder() string {
	return strconv.FormatInt(m.epoch(), 10)
}
