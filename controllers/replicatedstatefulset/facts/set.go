package facts

import (
	"fmt"
	"iter"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Deleting reports whether the object is being deleted.
func (w *World) Deleting() bool { return w.Set.DeletionTimestamp != nil }

// HasFinalizer reports whether the object has our finalizer.
func (w *World) HasFinalizer() bool {
	return controllerutil.ContainsFinalizer(w.Set, v1alpha1.FinalizerStop)
}

// MayRunCommands reports whether the operator may run commands.
func (w *World) MayRunCommands() bool {
	if w.Invalid != "" || w.NamespaceTerminating || w.ReleasesPods() {
		return false
	}
	return w.Deleting() || !w.Set.Spec.Paused
}

// ManagesChildren reports whether the operator maintains pods and children.
func (w *World) ManagesChildren() bool { return w.Invalid == "" && !w.NamespaceTerminating }

// Wanted returns the wanted number of members. It is 0 while the set is being deleted, and while a
// stopped set may not start (see TooFew).
func (w *World) Wanted() int {
	if w.Deleting() || w.TooFew() {
		return 0
	}
	return int(*w.Set.Spec.Replicas)
}

// WantedPrimaries returns the wanted number of primaries.
func (w *World) WantedPrimaries() int {
	if w.Wanted() == 0 {
		return 0
	}
	return max(1, int(spec.PrimariesWanted(w.Set)))
}

// TooFew reports whether a stopped set would restart with fewer members than it had. The newest
// copy may be on one of the missing members.
func (w *World) TooFew() bool {
	want := *w.Set.Spec.Replicas
	if want <= 0 || want >= w.Set.Status.RestoreReplicas {
		return false
	}
	if w.Stateful == nil {
		return len(w.Members) == 0
	}
	return *w.Stateful.Spec.Replicas == 0
}

// Configured reports whether the spec has the command.
func (w *World) Configured(name string) bool {
	return spec.HasCommand(w.Set, name)
}

// IsUpToDate reports whether the pod was created from the current template or updated to it in
// place.
func (w *World) IsUpToDate(m *Member) bool {
	if w.Stateful == nil {
		return true
	}
	if IsChangedInPlace(m.Pod) {
		return false // it may have the resources of another template
	}
	return m.Pod.Annotations[v1alpha1.AnnotationTemplate] == w.Stateful.Spec.Template.Annotations[v1alpha1.AnnotationTemplate]
}

// IsAtRest reports whether the state is the expected one of a member that is not primary.
func (w *World) IsAtRest(s record.State) bool {
	if w.Configured(v1alpha1.CommandSecondary) {
		return s == record.Secondary
	}
	return s == record.Secondary || s == record.Idle
}

// WantedNames yields the names of the wanted pods. It is an iterator because an old object may want
// any number of pods.
func (w *World) WantedNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range int(min(*w.Set.Spec.Replicas, spec.MaxReplicas)) {
			if !yield(spec.MemberName(w.Set, i)) {
				return
			}
		}
	}
}

// IsShownRunning reports whether the status lists a member as primary or secondary.
func IsShownRunning(all *v1alpha1.Members, name string) bool {
	return slices.Contains(all.Primary, name) || slices.Contains(all.Secondary, name)
}

// Ours reports whether the object controls a child.
func (w *World) Ours(child metav1.Object) bool {
	return owned.By(child, w.Set, v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"))
}

// Controls reports whether a StatefulSet controls a child.
func Controls(set *appsv1.StatefulSet, child metav1.Object) bool {
	return owned.By(child, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
}

// ChildKey returns the type and name of a child, as a key for World.Mended.
func ChildKey(child metav1.Object) string { return fmt.Sprintf("%T %s", child, child.GetName()) }

// Deadline returns when the ordered stop of a deleted object ends, and all its pods are deleted.
func (w *World) Deadline() time.Time {
	return w.Watch.Deadline(w.Set.DeletionTimestamp.Time, spec.Patience)
}

// LastDeadline returns when the operator stops waiting for the end of these pods.
func (w *World) LastDeadline() time.Time {
	return w.Watch.Deadline(w.Set.DeletionTimestamp.Time, 2*spec.Patience)
}

// Overdue reports whether Deadline has passed.
func (w *World) Overdue() bool { return w.Deleting() && !w.Now.Before(w.Deadline()) }

// ReleasesPods reports whether the operator must release the pods: their namespace is being
// deleted, or the object was deleted with orphaned dependents.
func (w *World) ReleasesPods() bool {
	if !w.Deleting() {
		return false
	}
	return !w.ManagesChildren() || slices.Contains(w.Set.Finalizers, metav1.FinalizerOrphanDependents)
}

// IsEmpty reports whether the set has no pods and gets none.
func (w *World) IsEmpty() bool {
	if len(w.Members) > 0 {
		return false
	}
	return !w.HasStatefulSet() || *w.Stateful.Spec.Replicas == 0
}

// HasFollowers reports whether members follow the primaries.
func (w *World) HasFollowers() bool {
	return spec.HasFollowers(w.Set, w.Wanted(), w.WantedPrimaries())
}

// ChangesInPlace reports whether members may be changed in place.
func (w *World) ChangesInPlace() bool {
	strategy := w.Set.Spec.UpdateStrategy
	return strategy != nil && strategy.InPlace == v1alpha1.InPlaceResources
}

// IsStored reports whether the pod is in the stored status.
func (w *World) IsStored(m *Member) bool {
	if record.CommandOf(w.Set.Status.Commands, m.Pod.UID) != nil {
		return true
	}
	return slices.ContainsFunc(
		w.Set.Status.Grants,
		func(g v1alpha1.Grant) bool { return g.UID == m.Pod.UID },
	)
}

// TemplateIsSeen reports whether the StatefulSet controller has observed the template.
func (w *World) TemplateIsSeen() bool {
	return w.Stateful != nil && w.Stateful.Status.ObservedGeneration == w.Stateful.Generation
}

// HasStatefulSet reports whether the set has a StatefulSet that is not terminating.
func (w *World) HasStatefulSet() bool {
	return w.Stateful != nil && w.Ours(w.Stateful) && w.Stateful.DeletionTimestamp == nil
}

// Majority returns the min number of members that is more than half of the wanted ones.
func (w *World) Majority() int {
	return w.Wanted()/2 + 1
}
