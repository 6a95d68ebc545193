package statefulsingleton

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

// keepObject holds the object back from being deleted while pods wait. It comes
// before the first grant.
func keepObject(f *facts, p *plan) {
	if f.object == nil || f.deleting() || controllerutil.ContainsFinalizer(f.object, v1.FinalizerSingleton) {
		return
	}
	object := f.object.DeepCopy()
	controllerutil.AddFinalizer(object, v1.FinalizerSingleton)
	p.Do(action.Chain{{Verb: action.Patch, Object: object, From: f.object, Unchanged: true, Reason: reasonKeep}})
}

// keepWrapper keeps the ConfigMap with a copy of the script of Script mode, for people
// to read.
func keepWrapper(f *facts, p *plan) {
	if f.object == nil || f.deleting() {
		return
	}
	want := buildWrapper(f.object.Namespace, script.Text, []v1.StatefulSingleton{*f.object})
	if f.wrapper == nil {
		p.Do(action.Chain{{Verb: action.Create, Named: true, Object: want, Reason: reasonWrapper}})
		return
	}
	if mended := f.mendedWrapper(want); mended != nil {
		p.Do(action.Chain{{Verb: action.Patch, Object: mended, From: f.wrapper, Reason: reasonWrapper}})
	}
}

// mendedWrapper is the ConfigMap as it should be; nil if it is. What others added to it
// stays, and one that another client made is left alone: no pod depends on it.
func (w *world) mendedWrapper(want *corev1.ConfigMap) *corev1.ConfigMap {
	if w.wrapper.DeletionTimestamp != nil || w.isForeignWrapper() {
		return nil
	}
	mended := w.wrapper.DeepCopy()
	mended.Labels = merged(mended.Labels, want.Labels)
	mended.Data = merged(mended.Data, want.Data)
	if !slices.ContainsFunc(mended.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.object.UID }) {
		mended.OwnerReferences = append(mended.OwnerReferences, want.OwnerReferences...)
	}
	owned := len(mended.OwnerReferences) == len(w.wrapper.OwnerReferences)
	if owned && maps.Equal(mended.Labels, w.wrapper.Labels) && maps.Equal(mended.Data, w.wrapper.Data) {
		return nil
	}
	return mended
}

// isForeignWrapper reports whether another client made the ConfigMap of that name.
func (w *world) isForeignWrapper() bool {
	if w.wrapper.Labels[v1.LabelManagedBy] == v1.ManagedBy {
		return false
	}
	return !slices.ContainsFunc(w.wrapper.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "StatefulSingleton" })
}

// merged is what is there, with what is wanted.
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
func letAllGo(f *facts, p *plan) {
	if !f.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range f.pods {
		if f.namespaceGoes || !f.isAlsoOfAnother(m) {
			chains = append(chains, letGo(f, m)...)
		}
	}
	p.Do(chains...)
	p.Then(freeObject(f)...)
}

// letOrphansGo does the same for the pods of an object that is gone for good,
// but one after another.
func letOrphansGo(f *facts, p *plan) {
	if f.object != nil {
		return
	}
	chains := f.unprotectAll(func(*member) bool { return true })
	if len(chains) == 0 && len(f.blockers) == 0 && len(f.waiting) > 0 {
		chains = letGo(f, f.waiting[0])
	}
	p.Do(chains...)
}

// unprotectAll takes our finalizer off the pods that a filter lets pass.
func (f *facts) unprotectAll(which func(*member) bool) []action.Chain {
	var chains []action.Chain
	for _, m := range f.pods {
		if m.protected() && which(m) {
			chains = append(chains, action.Chain{unprotect(m, reasonLetGo)})
		}
	}
	return chains
}

// letGo lets a pod run without our watching it.
func letGo(f *facts, m *member) []action.Chain {
	pod := m.pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1.FinalizerPod)
	m.returnTo(pod)
	starts := f.startsLetGo(m)
	if starts {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationGrant, grantOf(pod.UID, f.epoch()+1))
	}
	var chain action.Chain
	if starts || m.protected() {
		chain = append(chain, action.Action{Verb: action.Patch, Object: pod, From: m.pod, Unchanged: true, Reason: reasonLetGo})
	}
	if starts && !m.ready() {
		chain = append(chain, readiness(f, m, corev1.ConditionTrue))
	}
	if len(chain) == 0 {
		return nil
	}
	return []action.Chain{chain}
}

// startsLetGo reports whether a pod that is let go starts its program.
func (f *facts) startsLetGo(m *member) bool {
	if f.namespaceGoes || !m.lives() {
		return false
	}
	return m.gated && !m.granted()
}

// finishDeletion takes our finalizer off the object when nothing needs it any more. What
// runs, runs on, and is not watched any longer.
func finishDeletion(f *facts, p *plan) {
	if !f.deleting() || f.isNeeded() || len(p.Steps) > 0 {
		return
	}
	p.Do(f.unprotectAll(func(m *member) bool {
		return !f.isAlsoOfAnother(m)
	})...)
	p.Then(freeObject(f)...)
}

// isNeeded reports whether an object that is being deleted still has something to do: a
// pod waits for its turn, or one is still stopping, whose owner recreates it and which a
// pod without the gate would run beside. An object that may not start pods does not keep
// them: an older object decides about its own, and the others are released when it is gone.
func (f *facts) isNeeded() bool {
	if !f.serves() {
		return false
	}
	return len(f.waiting) > 0 || f.isStopping()
}

// isStopping reports whether a pod that may be running its program is being deleted.
func (f *facts) isStopping() bool {
	return slices.ContainsFunc(f.blockers, (*member).terminating)
}

// freeObject takes our finalizer off the object; others may hold it still.
func freeObject(f *facts) []action.Chain {
	if !controllerutil.ContainsFinalizer(f.object, v1.FinalizerSingleton) {
		return nil
	}
	object := f.object.DeepCopy()
	controllerutil.RemoveFinalizer(object, v1.FinalizerSingleton)
	return []action.Chain{{{Verb: action.Patch, Object: object, From: f.object, Unchanged: true, Reason: reasonRelease}}}
}
