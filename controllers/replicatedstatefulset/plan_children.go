package replicatedstatefulset

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// keepChildren makes what is missing and repairs what others changed. The number of pods is
// scale's.
func keepChildren(f *facts, p *plan) {
	if !f.keeps() || f.deleting() {
		return
	}
	for _, want := range buildServices(f.set) {
		keepService(f, p, want)
	}
	keepBudgets(f, p)
	keepStatefulSet(f, p)
}

func keepService(f *facts, p *plan, want *corev1.Service) {
	have := f.services[want.Name]
	if have == nil {
		p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		return
	}
	if !f.ours(have) {
		return
	}
	next := have.DeepCopy()
	next.Labels = merged(have.Labels, want.Labels)
	next.Spec.Selector, next.Spec.PublishNotReadyAddresses = want.Spec.Selector, want.Spec.PublishNotReadyAddresses
	next.Spec.Ports = owned.Ports(have.Spec.Ports, want.Spec.Ports)
	mend(f, p, false, action.Action{
		Verb:      action.Patch,
		Object:    next,
		From:      have,
		Unchanged: true,
		Reason:    reasonChild,
	})
}

// ours reports whether a child is controlled by the object.
func (w *world) ours(child metav1.Object) bool {
	return owned.By(child, w.set, v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"))
}

// makes reports whether a StatefulSet controls a child.
func makes(set *appsv1.StatefulSet, child metav1.Object) bool {
	return owned.By(child, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
}

// mend patches a child that is not what it should be: not again at once, unless the spec has
// changed. Another client may take it back.
func mend(f *facts, p *plan, changed bool, a action.Action) {
	if apiequality.Semantic.DeepEqual(a.Object, a.From) {
		return
	}
	if left := f.mended[childKey(a.From)].Add(mendPause).Sub(f.now); left > 0 && !changed {
		p.LookAgain(left)
		return
	}
	p.Do(action.Chain{a})
}

func childKey(child metav1.Object) string { return fmt.Sprintf("%T %s", child, child.GetName()) }

// keepStatefulSet makes the StatefulSet, and gives it a new template when what its pods must
// be recreated for has changed, which it finds by the hash, or when another client changed
// what it says. What the API server added stays.
func keepStatefulSet(f *facts, p *plan) {
	have, carries := f.stateful, f.config.target.Stamp
	if have == nil {
		replicas := f.replicasToMake()
		made := buildStatefulSet(f.set, replicas, hashes{f.rules, carries.Hash})
		keepRecordOfConfig(made, carries.Record)
		p.Do(action.Chain{{
			Verb: action.Create, Object: made,
			Reason: reasonChild, Detail: fmt.Sprintf("%d pods", replicas),
		}})
		return
	}
	if !f.hasStatefulSet() {
		return
	}
	want := buildStatefulSet(f.set, *have.Spec.Replicas, hashes{f.rules, carries.Hash})
	if f.recreatesAnyway(want) {
		carries = f.config.fresh
		want = buildStatefulSet(f.set, *have.Spec.Replicas, hashes{f.rules, carries.Hash})
	}
	next, reason := have.DeepCopy(), reasonChild
	next.Labels = merged(have.Labels, want.Labels)
	keepRecordOfConfig(next, carries.Record)
	next.Spec.UpdateStrategy = want.Spec.UpdateStrategy
	next.Spec.PersistentVolumeClaimRetentionPolicy = leftovers{f.world}.meanwhile()
	is, should := &have.Spec.Template, &want.Spec.Template
	changed := is.Annotations[v1alpha1.AnnotationTemplate] != should.Annotations[v1alpha1.AnnotationTemplate]
	p.newTemplate, p.configEvent = changed, f.config.target.Event
	if changed || !sameTemplate(is, should) {
		next.Spec.Template, reason = *should, reasonTemplate
	}
	isNew := changed || carries.Record != stampOf(have).Record
	mend(f, p, isNew, action.Action{
		Verb:      action.Patch,
		Object:    next,
		From:      have,
		Unchanged: true,
		Reason:    reason,
	})
}

// keepRecordOfConfig writes the record on a StatefulSet; "" takes it off.
func keepRecordOfConfig(set *appsv1.StatefulSet, record string) {
	if record == "" {
		delete(set.Annotations, v1alpha1.AnnotationConfigRecord)
		return
	}
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationConfigRecord, record)
}

// recreatesAnyway reports whether members are to be recreated for another reason than a change
// of the configuration, while there is such a change: one restart is enough for both.
func (w *world) recreatesAnyway(want *appsv1.StatefulSet) bool {
	carried := stampOf(w.stateful)
	if w.config.fresh.Hash == "" || w.config.target.Restarts(carried) {
		return false
	}
	is, should := &w.stateful.Spec.Template, &want.Spec.Template
	return is.Annotations[v1alpha1.AnnotationTemplate] != should.Annotations[v1alpha1.AnnotationTemplate]
}

// sameTemplate reports whether a template says what it should.
func sameTemplate(is, should *corev1.PodTemplateSpec) bool {
	return maps.Equal(is.Labels, should.Labels) &&
		maps.Equal(is.Annotations, should.Annotations) &&
		apiequality.Semantic.DeepEqual(is.Finalizers, should.Finalizers) &&
		undone.Covers(is.Spec, should.Spec)
}

// replicasToMake is with how many pods a StatefulSet is made. One that takes the place of one
// that was deleted adopts the pods that run, and has those deleted at once that are beyond
// its number: scale takes them away in order. A paused set gets none that it did not have.
func (f *facts) replicasToMake() int32 {
	n := f.wanted()
	if f.set.Spec.Paused {
		n = min(n, int(f.set.Status.RestoreReplicas))
	}
	for _, m := range f.members {
		n = max(n, m.ordinal+1)
	}
	return int32(n)
}
