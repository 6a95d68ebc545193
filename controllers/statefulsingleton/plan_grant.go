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

// grantNext starts the next pod if none may be running. The world was read in
// this order: object, pods. A grant that another operator decided after the
// object was read has changed its resourceVersion, and the first write here
// fails; one decided before is in the pods.
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

// completeGrant repeats the second write for a holder that has no grant. It is
// never withdrawn while that pod lives: the operator that named it may be about
// to grant it still.
func completeGrant(f *facts, p *plan) {
	for _, m := range f.blockers {
		if m.holder && m.lives() && !m.granted() {
			p.Do(action.Chain{grant(m, f.object.Status.Holder.Epoch)})
		}
	}
}

// adopt makes a pod that was granted earlier the holder, when the one that is
// named has gone: an object of this name was deleted and made again.
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

// oldestGranted is the oldest pod with a grant; nil if there is none.
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

// nameHolder is the first write of a grant, and the lock.
func nameHolder(f *facts, m *member, epoch int64, reason string) action.Action {
	object := f.object.DeepCopy()
	since := metav1.NewTime(f.now)
	object.Status.Holder = &v1.Holder{Name: m.name(), UID: m.pod.UID, Node: m.pod.Spec.NodeName, Since: &since, Epoch: epoch}
	return action.Action{Verb: action.PatchStatus, Object: object, From: f.object, Reason: reason,
		Detail: fmt.Sprintf("%s, epoch %d", m.name(), epoch)}
}

// grant is the second write: what starts the program, and what keeps the pod
// visible until it has stopped, at once or not at all.
func grant(m *member, epoch int64) action.Action {
	pod := m.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationGrant, grantOf(pod.UID, epoch))
	controllerutil.AddFinalizer(pod, v1.FinalizerPod)
	return action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: true, Reason: reasonGrant,
		Detail: epochDetail(epoch)}
}

func epochDetail(epoch int64) string { return fmt.Sprintf("epoch %d", epoch) }

// protect keeps pods that may be running visible, whoever started them. What runs when a
// deleted object goes is not watched any longer.
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
		metav1.SetMetaDataLabel(&pod.ObjectMeta, v1.LabelSingleton, f.object.Name) // to find it when the object is gone
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonProtect}})
	}
	p.Do(chains...)
}

// needsFinalizer reports whether our finalizer is to be put on a pod that may be running.
func (m *member) needsFinalizer() bool {
	switch {
	case m.protected():
		return false
	case m.terminating(): // the API server refuses new finalizers on it
		return false
	case isMirror(m.pod): // it is its kubelet's own
		return false
	case m.holder && !m.granted(): // it comes with the grant
		return false
	}
	return true
}

// release lets pods go that have stopped, or are fenced.
func release(f *facts, p *plan) {
	var chains []action.Chain
	for _, m := range f.pods {
		if m.standing == out && m.protected() {
			chains = append(chains, action.Chain{unprotect(m, reasonRelease)})
		}
	}
	p.Do(chains...)
}

// unprotect takes our finalizer off. A proof that a pod has stopped stays true;
// that its object goes is true of the version that was read.
func unprotect(m *member, reason string) action.Action {
	pod := m.pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1.FinalizerPod)
	if reason == reasonLetGo {
		m.returnTo(pod)
	}
	return action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: reason == reasonLetGo, Reason: reason}
}

// repairReadiness makes the holder's condition True and that of waiting pods
// anything else.
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

// remind changes the holder once more, so that its kubelet renews its volumes.
// One that was renewing them when the grant came marks them as new although they
// are not (volumemanager/cache, AddPodToVolume resets remountRequired), and then
// the program would wait for the next look, which comes a minute later.
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

// reminder is the text of the annotation that reminds of the pod's grant.
func (m *member) reminder() string {
	return strconv.FormatInt(m.epoch(), 10)
}
