package statefulsingleton

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// grantNext starts the next pod if none may be running. The world was read in
// this order: object, pods. A grant that another operator decided after the
// object was read has changed its resourceVersion, and the first write here
// fails; one decided before is in the pods.
func grantNext(w *world, p *plan) {
	if len(p.blockers) > 0 || len(p.waiting) == 0 || !w.grants() || w.releasesAll() {
		return
	}
	next, after := w.next(p.waiting)
	p.LookAgain(after)
	if next == nil {
		return
	}
	p.Do(action.Chain{
		nameHolder(w, next, w.epoch()+1, reasonHolder),
		grant(next, w.epoch()+1),
	})
}

// completeGrant repeats the second write for a holder that has no grant. It is
// never withdrawn while that pod lives: the operator that named it may be about
// to grant it still.
func completeGrant(w *world, p *plan) {
	for _, m := range p.blockers {
		if w.isHolder(m) && !m.granted() && !m.terminating() && !podstate.Ended(m.pod) {
			p.Do(action.Chain{grant(m, w.object.Status.Holder.Epoch)})
		}
	}
}

// adopt makes a pod that was granted earlier the holder, when the one that is
// named has gone: an object of this name was deleted and made again.
func adopt(w *world, p *plan) {
	if w.object == nil || w.elder() != nil || w.releasesAll() {
		return
	}
	var oldest *member
	for _, m := range p.blockers {
		if w.isHolder(m) {
			return
		}
		if m.granted() && (oldest == nil || m.pod.CreationTimestamp.Before(&oldest.pod.CreationTimestamp)) {
			oldest = m
		}
	}
	if oldest != nil {
		p.Do(action.Chain{nameHolder(w, oldest, max(w.epoch(), 1), reasonAdopt)})
	}
}

// nameHolder is the first write of a grant, and the lock.
func nameHolder(w *world, m *member, epoch int64, reason string) action.Action {
	object := w.object.DeepCopy()
	since := metav1.NewTime(w.now)
	object.Status.Holder = &v1.Holder{Name: m.name(), UID: m.pod.UID, Node: m.pod.Spec.NodeName, Since: &since, Epoch: epoch}
	return action.Action{Verb: action.PatchStatus, Object: object, From: w.object, Reason: reason,
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

// protect keeps pods that may be running visible, whoever started them. The API
// server refuses new finalizers on a pod that is being deleted; and the pods
// that a kubelet runs by itself are its own.
func protect(w *world, p *plan) {
	if w.object == nil || w.deleting() && len(p.waiting) == 0 {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		if m.protected() || m.terminating() || isMirror(m.pod) || w.isHolder(m) && !m.granted() {
			continue
		}
		pod := m.pod.DeepCopy()
		controllerutil.AddFinalizer(pod, v1.FinalizerPod)
		metav1.SetMetaDataLabel(&pod.ObjectMeta, v1.LabelSingleton, w.object.Name) // to find it when the object is gone
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonProtect}})
	}
	p.Do(chains...)
}

// release lets pods go that have stopped, or are fenced.
func release(w *world, p *plan) {
	var chains []action.Chain
	for _, m := range w.pods {
		if m.protected() && !w.mayRun(m) && !w.waits(m) {
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
	return action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: reason == reasonLetGo, Reason: reason}
}

// repairReadiness makes the holder's condition True and that of waiting pods
// anything else.
func repairReadiness(w *world, p *plan) {
	var chains []action.Chain
	for _, m := range p.blockers {
		if w.isHolder(m) && m.granted() && !m.ready() {
			chains = append(chains, action.Chain{readiness(w, m, corev1.ConditionTrue)})
		}
	}
	for _, m := range p.waiting {
		if m.ready() {
			chains = append(chains, action.Chain{readiness(w, m, corev1.ConditionFalse)})
		}
	}
	p.Do(chains...)
}

func readiness(w *world, m *member, status corev1.ConditionStatus) action.Action {
	return action.Action{Verb: action.SetCondition, Object: withReadiness(m.pod, status, w.now), From: m.pod, Reason: reasonReady,
		Detail: string(status)}
}

// remindAfter is how long after its grant a pod is changed once more. It is
// longer than a kubelet takes to show a grant that it has not missed.
const remindAfter = 2 * time.Second

// remind changes the holder once more, so that its kubelet renews its volumes.
// One that was renewing them when the grant came marks them as new although they
// are not (volumemanager/cache, AddPodToVolume resets remountRequired), and then
// the program would wait for the next look, which comes a minute later.
func remind(w *world, p *plan) {
	for _, m := range p.blockers {
		if !w.isHolder(m) || !m.granted() || !m.gated || m.terminating() || podstate.Ended(m.pod) {
			continue
		}
		since, text := w.object.Status.Holder.Since, strconv.FormatInt(m.epoch(), 10)
		if since == nil || m.pod.Annotations[v1.AnnotationReminder] == text {
			continue
		}
		if wait := since.Add(remindAfter).Sub(w.now); wait > 0 {
			p.LookAgain(wait)
			continue
		}
		pod := m.pod.DeepCopy()
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationReminder, text)
		p.Do(action.Chain{{Verb: action.Patch, Object: pod, From: m.pod, Reason: reasonRemind, Detail: epochDetail(m.epoch())}})
	}
}
