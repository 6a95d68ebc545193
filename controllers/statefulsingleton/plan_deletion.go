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

// keepObject adds the finalizer that keeps a deleted object while pods wait. It acts before
// the first grant.
func keepObject(f *facts, p *plan) {
	if f.object == nil || f.deleting() || controllerutil.ContainsFinalizer(f.object, v1.FinalizerSingleton) {
		return
	}
	object := f.object.DeepCopy()
	controllerutil.AddFinalizer(object, v1.FinalizerSingleton)
	p.Do(action.Chain{{Verb: action.Patch, Object: object, From: f.object, Unchanged: true, Reason: reasonKeep}})
}

// keepWrapper maintains the ConfigMap with a copy of the script of Script mode, for users
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

// mendedWrapper returns the corrected ConfigMap; nil if it is correct. Additions by others
// are kept. A ConfigMap of another client is not changed, because no pod depends on it.
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

// isForeignWrapper reports whether another client created the ConfigMap.
func (w *world) isForeignWrapper() bool {
	if w.wrapper.Labels[v1.LabelManagedBy] == v1.ManagedBy {
		return false
	}
	return !slices.ContainsFunc(w.wrapper.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "StatefulSingleton" })
}

// merged returns want, with the other keys of have.
func merged(have, want map[string]string) map[string]string {
	all := maps.Clone(want)
	for key, value := range have {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	return all
}

// letAllGo releases all pods at once and ends the guarantee: waiting pods start together,
// and our finalizers are removed. In a terminating namespace waiting pods are not started.
// Otherwise pods that another object selects as well are left to that object.
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

// letOrphansGo releases the pods of a deleted object, and starts the waiting ones one after
// another.
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

// unprotectAll returns actions that remove our finalizer from the pods that pass the
// filter.
func (f *facts) unprotectAll(which func(*member) bool) []action.Chain {
	var chains []action.Chain
	for _, m := range f.pods {
		if m.protected() && which(m) {
			chains = append(chains, action.Chain{unprotect(m, reasonLetGo)})
		}
	}
	return chains
}

// letGo returns the actions that release a pod. A waiting pod is started.
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

// startsLetGo reports whether the program of a pod is started when the pod is released.
func (f *facts) startsLetGo(m *member) bool {
	if f.namespaceGoes || !m.lives() {
		return false
	}
	return m.gated && !m.granted()
}

// finishDeletion removes our finalizers from the pods and from the object when the object
// is no longer needed. Running programs keep running and are no longer watched.
func finishDeletion(f *facts, p *plan) {
	if !f.deleting() || f.isNeeded() || len(p.Steps) > 0 {
		return
	}
	p.Do(f.unprotectAll(func(m *member) bool {
		return !f.isAlsoOfAnother(m)
	})...)
	p.Then(freeObject(f)...)
}

// isNeeded reports whether a terminating object still has work to do. A pod may be waiting.
// Or a pod may be stopping: its owner would recreate it without the gate, and two programs
// could run. An object that does not serve is not needed: an older object manages its own
// pods, and the other pods are released when this object is gone.
func (f *facts) isNeeded() bool {
	if !f.serves() {
		return false
	}
	return len(f.waiting) > 0 || f.isStopping()
}

// isStopping reports whether a pod that may be running its program is terminating.
func (f *facts) isStopping() bool {
	return slices.ContainsFunc(f.blockers, (*member).terminating)
}

// freeObject returns the action that removes our finalizer from the object. Other
// finalizers may still keep it.
func freeObject(f *facts) []action.Chain {
	if !controllerutil.ContainsFinalizer(f.object, v1.FinalizerSingleton) {
		return nil
	}
	object := f.object.DeepCopy()
	controllerutil.RemoveFinalizer(object, v1.FinalizerSingleton)
	return []action.Chain{{{Verb: action.Patch, Object: object, From: f.object, Unchanged: true, Reason: reasonRelease}}}
}
