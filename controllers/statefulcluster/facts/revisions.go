package facts

import (
	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
)

// Named returns the existing revision with that name, or nil.
func (w *World) Named(name string) *appsv1.ControllerRevision {
	return revision.ByName(w.Revisions, name)
}

// RevisionFor returns the revision with that name, or the target revision if it does not exist.
func (f *Facts) RevisionFor(name string) *appsv1.ControllerRevision {
	if rev := f.Named(name); rev != nil {
		return rev
	}
	return f.Target
}

// SpecRefused reports whether the API server recently refused to create the revision of the spec.
func (f *Facts) SpecRefused() bool { return f.Spec.UID == "" && f.RefusedNow(ReasonRevision) }

// NotAt returns the members that do not have the given revision.
func (f *Facts) NotAt(revision *appsv1.ControllerRevision) []*Member {
	var old []*Member
	for _, m := range f.Alive {
		if m.Revision() != revision.Name {
			old = append(old, m)
		}
	}
	return old
}

// SpecRevision returns the revision of the current spec: the existing one, or the one that rule
// recordRevision will create, without a UID.
func SpecRevision(w *World) *appsv1.ControllerRevision {
	built := children.BuildRevision(w.Settings, w.Revisions)
	if have := revision.Same(w.Revisions, built); have != nil {
		return have
	}
	for n := int32(1); w.Named(built.Name) != nil; n++ {
		built = children.HashedAgain(w.Settings, w.Revisions, n) // a hash collision with another template
	}
	return built
}

// ForeignBudget reports whether the budget with the set's name has another owner.
func (w *World) ForeignBudget() bool {
	return w.Budget != nil && !children.Controls(w.Set, w.Budget)
}

// UnseenBudget reports whether the budget lacks the label by which the cache selects it.
func (w *World) UnseenBudget() bool {
	return w.Budget != nil && w.Budget.Labels[v1alpha1.LabelCluster] == ""
}

// EverReady reports whether a member of that revision was ever Ready.
func (w *World) EverReady(name string) bool {
	return w.Marked(name, v1alpha1.AnnotationRevisionReady)
}

// Marked reports whether a revision has the annotation.
func (w *World) Marked(name, mark string) bool {
	rev := w.Named(name)
	return rev != nil && rev.Annotations[mark] == Yes
}
