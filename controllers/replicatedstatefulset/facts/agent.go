package facts

import (
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podresize"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
)

// wantedAgent returns the agent that the pods should have. It is that on record, and changes only if
// there are no pods, or if all pods must be recreated for another reason. So an upgrade of the operator
// restarts no container. It requires a valid spec.
func (w *World) wantedAgent() *v1alpha1.AgentStatus {
	pinned := w.Set.Status.Agent
	switch {
	case w.Set.Spec.Application == nil:
		return nil
	case w.Agent.Image == "":
		return pinned
	case pinned == nil, w.IsEmpty(), *pinned != w.Agent && w.changesTemplate():
		return &w.Agent
	}
	return pinned
}

// HasAgent reports whether the StatefulSet can be built: the agent is on record if the set needs one,
// and this pass does not change it.
func (f *Facts) HasAgent() bool {
	if f.Set.Spec.Application != nil && f.Set.Status.Agent == nil {
		return false
	}
	return apiequality.Semantic.DeepEqual(f.WantedAgent, f.Set.Status.Agent)
}

// changesTemplate reports whether the spec or the configuration requires that the pods are recreated.
// A change that is made in place does not.
func (w *World) changesTemplate() bool {
	if !w.HasStatefulSet() {
		return false
	}
	want, _ := w.WantedStatefulSet()
	if !NeedsNewPods(w.Stateful, want) {
		return false
	}
	is, should := podresize.Without(&w.Stateful.Spec.Template.Spec), podresize.Without(&want.Spec.Template.Spec)
	return !w.ChangesInPlace() || !undone.Covers(*is, *should)
}

// NeedsNewPods reports whether pods must be recreated to get another template.
func NeedsNewPods(have, want *appsv1.StatefulSet) bool {
	const hash = v1alpha1.AnnotationTemplate
	return have.Spec.Template.Annotations[hash] != want.Spec.Template.Annotations[hash]
}

// WantedStatefulSet returns the StatefulSet that replaces the current one, and its configuration stamp.
func (w *World) WantedStatefulSet() (*appsv1.StatefulSet, configuration.Stamp) {
	build := func(carries configuration.Stamp) *appsv1.StatefulSet {
		return children.BuildStatefulSet(w.Set, *w.Stateful.Spec.Replicas, children.Hashes{Rules: w.Rules, Config: carries.Hash})
	}
	want := build(w.Config.Target.Stamp)
	if w.recreatesAnyway(want) {
		return build(w.Config.Fresh), w.Config.Fresh
	}
	return want, w.Config.Target.Stamp
}

// recreatesAnyway reports whether members must be recreated for another reason while a
// configuration change waits for its turn. Then the new template includes the change, and one
// restart covers both.
func (w *World) recreatesAnyway(want *appsv1.StatefulSet) bool {
	carried := StampOf(w.Stateful)
	if w.Config.Fresh.Hash == "" || w.Config.Target.Restarts(carried) {
		return false
	}
	return NeedsNewPods(w.Stateful, want)
}
