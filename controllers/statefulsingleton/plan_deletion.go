package statefulsingleton

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

// keepObject holds the object back from being deleted while pods wait. It comes
// before the first grant.
func keepObject(w *world, p *plan) {
	if w.object == nil || w.deleting() || controllerutil.ContainsFinalizer(w.object, v1.FinalizerSingleton) {
		return
	}
	object := w.object.DeepCopy()
	controllerutil.AddFinalizer(object, v1.FinalizerSingleton)
	p.Do(action.Chain{{Verb: action.Patch, Object: object, From: w.object, Unchanged: true, Reason: reasonKeep}})
}

// keepWrapper keeps the ConfigMap with a copy of the script of Script mode, for people
// to read. What others added to it stays, and one that is somebody else's is left
// alone: no pod depends on it.
func keepWrapper(w *world, p *plan) {
	if w.object == nil || w.deleting() {
		return
	}
	want := buildWrapper(w.object.Namespace, script.Text, []v1.StatefulSingleton{*w.object})
	if w.wrapper == nil {
		p.Do(action.Chain{{Verb: action.Create, Named: true, Object: want, Reason: reasonWrapper}})
		return
	}
	if w.foreignWrapper() {
		return
	}
	have := w.wrapper.DeepCopy()
	have.Labels = merged(have.Labels, want.Labels)
	have.Data = merged(have.Data, want.Data)
	if !slices.ContainsFunc(have.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.object.UID }) {
		have.OwnerReferences = append(have.OwnerReferences, want.OwnerReferences...)
	}
	if maps.Equal(have.Labels, w.wrapper.Labels) && maps.Equal(have.Data, w.wrapper.Data) &&
		len(have.OwnerReferences) == len(w.wrapper.OwnerReferences) || w.wrapper.DeletionTimestamp != nil {
		return
	}
	p.Do(action.Chain{{Verb: action.Patch, Object: have, From: w.wrapper, Reason: reasonWrapper}})
}

// foreignWrapper tells whether the ConfigMap of that name is somebody else's.
func (w *world) foreignWrapper() bool {
	return w.wrapper != nil && w.wrapper.Labels[v1.LabelManagedBy] != v1.ManagedBy &&
		!slices.ContainsFunc(w.wrapper.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "StatefulSingleton" })
}

func merged(have, want map[string]string) map[string]string {
	all := maps.Clone(want)
	for key, value := range have {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	return all
}

// letAllGo ends the promise at once for all pods: those that wait start
// together, and no finalizer of ours is left. The pods of a namespace that is
// being deleted are not started for that. It is not the end of another object's
// promise.
func letAllGo(w *world, p *plan) {
	if !w.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range w.pods {
		if w.namespaceGoes || !w.isAlsoOfAnother(m) {
			chains = append(chains, letGo(w, m)...)
		}
	}
	p.Do(chains...)
	p.Then(freeObject(w)...)
}

// letOrphansGo does the same for the pods of an object that is gone for good,
// but one after another.
func letOrphansGo(w *world, p *plan) {
	if w.object != nil {
		return
	}
	var chains []action.Chain
	for _, m := range w.pods {
		if m.protected() {
			chains = append(chains, action.Chain{unprotect(m, reasonLetGo)})
		}
	}
	if len(chains) == 0 && len(p.blockers) == 0 && len(p.waiting) > 0 {
		chains = letGo(w, p.waiting[0])
	}
	p.Do(chains...)
}

// letGo lets a pod run without our watching it.
func letGo(w *world, m *member) []action.Chain {
	pod := m.pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1.FinalizerPod)
	starts := m.gated && !m.granted() && !m.terminating() && !podstate.Ended(pod) && !w.namespaceGoes
	if starts {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationGrant, grantOf(pod.UID, w.epoch()+1))
	}
	var chain action.Chain
	if starts || m.protected() {
		chain = append(chain, action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: true, Reason: reasonLetGo})
	}
	if starts && !m.ready() {
		chain = append(chain, readiness(w, m, corev1.ConditionTrue))
	}
	if len(chain) == 0 {
		return nil
	}
	return []action.Chain{chain}
}

// finishDeletion lets the object go when nobody waits for it any more. What
// runs, runs on, and is not watched any longer. One that may not start pods does
// not keep them: an older object decides about its own, and the others are let
// go when it is gone.
func finishDeletion(w *world, p *plan) {
	if !w.deleting() || w.serves() && len(p.waiting) > 0 || len(p.Steps) > 0 {
		return
	}
	var chains []action.Chain
	for _, m := range w.pods {
		if m.protected() && !w.isAlsoOfAnother(m) {
			chains = append(chains, action.Chain{unprotect(m, reasonLetGo)})
		}
	}
	p.Do(chains...)
	p.Then(freeObject(w)...)
}

// isAlsoOfAnother reports whether another object, whose selector overlaps,
// watches the pod too.
func (w *world) isAlsoOfAnother(m *member) bool {
	return slices.ContainsFunc(w.rivals, func(s *v1.StatefulSingleton) bool { return selects(s, labelsOf(m.pod)) })
}

// freeObject takes our finalizer off the object; others may hold it still.
func freeObject(w *world) []action.Chain {
	if !controllerutil.ContainsFinalizer(w.object, v1.FinalizerSingleton) {
		return nil
	}
	object := w.object.DeepCopy()
	controllerutil.RemoveFinalizer(object, v1.FinalizerSingleton)
	return []action.Chain{{{Verb: action.Patch, Object: object, From: w.object, Unchanged: true, Reason: reasonRelease}}}
}
