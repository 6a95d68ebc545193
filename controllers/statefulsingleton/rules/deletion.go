package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

// An object that is being deleted stays until no pod waits and no pod is stopping, and meanwhile starts
// the waiting pods one after another (IsNeeded). A user can release all pods at once instead
// (ReleasesAll), which ends the guarantee. If the object is gone although pods wait, because its
// finalizer was removed, they are started one after another as well (releaseOrphans).

// keepObject adds the finalizer that keeps a deleted object while pods wait. It acts before
// the first grant.
func keepObject(f *facts.Facts, p *Plan) {
	if f.Object == nil || f.Deleting() || controllerutil.ContainsFinalizer(f.Object, v1.FinalizerSingleton) {
		return
	}
	object := f.Object.DeepCopy()
	controllerutil.AddFinalizer(object, v1.FinalizerSingleton)
	p.Do(action.Chain{{Verb: action.Patch, Object: object, From: f.Object, Unchanged: true, Reason: reasonKeep}})
}

// keepWrapper maintains the ConfigMap with a copy of the script of Script mode, for users
// to read.
func keepWrapper(f *facts.Facts, p *Plan) {
	if f.Object == nil || f.Deleting() {
		return
	}
	want := children.BuildWrapper(f.Object.Namespace, script.Text, []v1.StatefulSingleton{*f.Object})
	if f.Wrapper == nil {
		p.Do(action.Chain{{Verb: action.Create, Named: true, Object: want, Reason: reasonWrapper}})
		return
	}
	if mended := f.MendedWrapper(want); mended != nil {
		p.Do(action.Chain{{Verb: action.Patch, Object: mended, From: f.Wrapper, Reason: reasonWrapper}})
	}
}

// releaseAll releases all pods of an object that is being deleted at once: waiting pods start
// together, and our finalizers are removed. In a terminating namespace waiting pods are not
// started. In any other, pods that another object selects as well are left to that object.
func releaseAll(f *facts.Facts, p *Plan) {
	if !f.ReleasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range f.Pods {
		if f.NamespaceGoes || !f.IsAlsoOfAnother(m) {
			chains = append(chains, releasePod(f, m)...)
		}
	}
	p.Do(chains...)
	p.Then(freeObject(f)...)
}

// releaseOrphans releases the pods of an object that no longer exists: it removes our
// finalizers, and starts the waiting pods one after another.
func releaseOrphans(f *facts.Facts, p *Plan) {
	if f.Object != nil {
		return
	}
	chains := unprotectAll(f, func(*facts.Member) bool { return true })
	if len(chains) == 0 && len(f.Blockers) == 0 && len(f.Waiting) > 0 {
		chains = releasePod(f, f.Waiting[0])
	}
	p.Do(chains...)
}

// unprotectAll returns the actions that remove our finalizer from the pods that pass the
// filter, whether they have stopped or not.
func unprotectAll(f *facts.Facts, filter func(*facts.Member) bool) []action.Chain {
	var chains []action.Chain
	for _, m := range f.Pods {
		if m.Protected() && filter(m) {
			chains = append(chains, action.Chain{Unprotect(m, ReasonLetGo)})
		}
	}
	return chains
}

// releasePod returns the actions that remove our finalizer from a pod, return it to its
// ReplicaSet if it is detached, and start its program if it waits.
func releasePod(f *facts.Facts, m *facts.Member) []action.Chain {
	pod := m.Pod.DeepCopy()
	controllerutil.RemoveFinalizer(pod, v1.FinalizerPod)
	m.ReturnTo(pod)
	starts := startsOnRelease(f, m)
	if starts {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationGrant, children.GrantOf(pod.UID, f.Epoch()+1))
	}
	var chain action.Chain
	if starts || m.Protected() {
		chain = append(chain, action.Action{Verb: action.Patch, Object: pod, From: m.Pod, Unchanged: true, Reason: ReasonLetGo})
	}
	if starts && !m.Ready() {
		chain = append(chain, readiness(f, m, corev1.ConditionTrue))
	}
	if len(chain) == 0 {
		return nil
	}
	return []action.Chain{chain}
}

// startsOnRelease reports whether the program of a pod is started when the pod is released.
func startsOnRelease(f *facts.Facts, m *facts.Member) bool {
	if f.NamespaceGoes || !m.Lives() {
		return false
	}
	return m.Gated && !m.Granted()
}

// finishDeletion removes our finalizers from the pods and from the object when the object
// is no longer needed. Running programs keep running and are no longer watched.
func finishDeletion(f *facts.Facts, p *Plan) {
	if !f.Deleting() || IsNeeded(f) || len(p.Steps) > 0 {
		return
	}
	p.Do(unprotectAll(f, func(m *facts.Member) bool {
		return !f.IsAlsoOfAnother(m)
	})...)
	p.Then(freeObject(f)...)
}

// IsNeeded reports whether a terminating object still has work to do. A pod may be waiting.
// Or a pod may be stopping: its owner would recreate it without the gate, and two programs
// could run. An object that does not serve is not needed: an older object manages its own
// pods, and the other pods are released when this object is gone.
func IsNeeded(f *facts.Facts) bool {
	switch {
	case !f.Serves():
		return false
	case f.LeaseProblem.Message != "" && len(leasedAccounts(f.Pods)) > 0: // without the object, no pod is started
		return true
	}
	return len(f.Waiting) > 0 || isStopping(f)
}

// isStopping reports whether a pod that may be running its program is terminating.
func isStopping(f *facts.Facts) bool {
	return slices.ContainsFunc(f.Blockers, (*facts.Member).Terminating)
}

// freeObject returns the action that removes our finalizer from the object. Other
// finalizers may still keep it.
func freeObject(f *facts.Facts) []action.Chain {
	if !controllerutil.ContainsFinalizer(f.Object, v1.FinalizerSingleton) {
		return nil
	}
	object := f.Object.DeepCopy()
	controllerutil.RemoveFinalizer(object, v1.FinalizerSingleton)
	return []action.Chain{{{Verb: action.Patch, Object: object, From: f.Object, Unchanged: true, Reason: ReasonRelease}}}
}
