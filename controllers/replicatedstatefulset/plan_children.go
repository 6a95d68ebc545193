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

// keepChildren creates missing children and repairs changes by others. scale sets the number of
// pods.
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

// ours reports whether the object controls a child.
func (w *world) ours(child metav1.Object) bool {
	return owned.By(child, w.set, v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"))
}

// makes reports whether a StatefulSet controls a child.
func makes(set *appsv1.StatefulSet, child metav1.Object) bool {
	return owned.By(child, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
}

// mend patches a child that differs from the wanted one. Unless the spec has changed, it waits for
// mendPause after the last patch, because another client may revert each patch.
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

// keepStatefulSet creates and repairs the StatefulSet. It writes a new template if the template
// hash differs, which recreates the pods, or if another client changed the template. Fields that
// the API server added stay.
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
	next.Spec.PersistentVolumeClaimRetentionPolicy = retentionMeanwhile(f.world)
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

// keepRecordOfConfig sets the configuration record of a StatefulSet; "" removes it.
func keepRecordOfConfig(set *appsv1.StatefulSet, record string) {
	if record == "" {
		delete(set.Annotations, v1alpha1.AnnotationConfigRecord)
		return
	}
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationConfigRecord, record)
}

// recreatesAnyway reports whether there is a configuration change while members must be recreated
// for another reason. Then one restart covers both.
func (w *world) recreatesAnyway(want *appsv1.StatefulSet) bool {
	carried := stampOf(w.stateful)
	if w.config.fresh.Hash == "" || w.config.target.Restarts(carried) {
		return false
	}
	is, should := &w.stateful.Spec.Template, &want.Spec.Template
	return is.Annotations[v1alpha1.AnnotationTemplate] != should.Annotations[v1alpha1.AnnotationTemplate]
}

// sameTemplate reports whether a template has everything that it should.
func sameTemplate(is, should *corev1.PodTemplateSpec) bool {
	return maps.Equal(is.Labels, should.Labels) &&
		maps.Equal(is.Annotations, should.Annotations) &&
		apiequality.Semantic.DeepEqual(is.Finalizers, should.Finalizers) &&
		undone.Covers(is.Spec, should.Spec)
}

// replicasToMake returns the number of pods of a new StatefulSet. A StatefulSet that replaces a
// deleted one adopts the running pods, and its controller deletes pods beyond its number at once.
// So the number covers all members, and scale removes the surplus in order. A paused set gets no
// pods that it did not have.
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
