package rules

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
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// keepChildren creates missing children and repairs changes by others. scale sets the number of
// pods.
func keepChildren(f *facts.Facts, p *Plan) {
	if !f.ManagesChildren() || f.Deleting() {
		return
	}
	for _, want := range children.BuildServices(f.Set) {
		keepService(f, p, want)
	}
	keepBudgets(f, p)
	if f.HasAgent() {
		KeepStatefulSet(f, p)
	}
}

// keepService creates or repairs a Service.
func keepService(f *facts.Facts, p *Plan, want *corev1.Service) {
	have := f.Services[want.Name]
	if have == nil {
		p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: facts.ReasonChild}})
		return
	}
	if !f.Ours(have) {
		return
	}
	patchChild(f, p, owned.IsReleased(have), action.Action{
		Verb:      action.Patch,
		Object:    owned.Service(have, want),
		From:      have,
		Unchanged: true,
		Reason:    facts.ReasonChild,
	})
}

// patchChild patches a child that differs from the wanted one. Unless the spec has changed, or the
// last patch was the first of two, it waits for MendPause after the last patch, because another client
// may revert each patch.
func patchChild(f *facts.Facts, p *Plan, changed bool, a action.Action) {
	if apiequality.Semantic.DeepEqual(a.Object, a.From) {
		return
	}
	if left := f.Mended[facts.ChildKey(a.From)].Add(spec.MendPause).Sub(f.Now); left > 0 && !changed {
		p.LookAgain(left)
		return
	}
	p.Do(action.Chain{a})
}

// KeepStatefulSet creates and repairs the StatefulSet. It writes a new template if the template
// hash differs, which recreates the pods, or if another client changed the template. Fields that
// the API server added stay. scale sets the replicas. The API server of an old Kubernetes allows no change of the other
// fields.
func KeepStatefulSet(f *facts.Facts, p *Plan) {
	have := f.Stateful
	if have == nil {
		carries, replicas := f.Config.Target.Stamp, replicasToMake(f)
		made := children.BuildStatefulSet(f.Set, replicas, children.Hashes{Rules: f.Rules, Config: carries.Hash})
		keepRecordOfConfig(made, carries.Record)
		p.Do(action.Chain{{
			Verb: action.Create, Object: made,
			Reason: facts.ReasonChild, Detail: fmt.Sprintf("%d pods", replicas),
		}})
		return
	}
	if !f.HasStatefulSet() {
		return
	}
	want, carries := f.WantedStatefulSet()
	next, reason := have.DeepCopy(), facts.ReasonChild
	next.Labels = spec.Merged(have.Labels, want.Labels)
	keepRecordOfConfig(next, carries.Record)
	next.Spec.UpdateStrategy = want.Spec.UpdateStrategy
	next.Spec.Ordinals = want.Spec.Ordinals // with another start, the StatefulSet controller deletes members
	next.Spec.MinReadySeconds = want.Spec.MinReadySeconds
	next.Spec.PersistentVolumeClaimRetentionPolicy = retentionMeanwhile(f.World)
	is, should := &have.Spec.Template, &want.Spec.Template
	changed := facts.NeedsNewPods(have, want)
	p.NewTemplate, p.ConfigEvent = changed, f.Config.Target.Event
	if changed || !sameTemplate(is, should) {
		next.Spec.Template, reason = *should, facts.ReasonTemplate
	}
	isNew := changed || carries.Record != facts.StampOf(have).Record
	patchChild(f, p, isNew, action.Action{
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
func replicasToMake(f *facts.Facts) int32 {
	n := f.Wanted()
	if f.Set.Spec.Paused {
		n = min(n, int(f.Set.Status.RestoreReplicas))
	}
	for _, m := range f.Members {
		n = max(n, m.Ordinal+1)
	}
	return int32(n)
}
