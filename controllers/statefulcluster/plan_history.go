package statefulcluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
)

// specRevision returns the revision of the current spec: the recorded one, or the one that
// recordRevision will create.
func specRevision(w *world) *appsv1.ControllerRevision {
	built := buildRevision(w.settings, w.revisions)
	if have := revision.Same(w.revisions, built); have != nil {
		return have
	}
	for n := int32(1); w.named(built.Name) != nil; n++ {
		built = hashedAgain(w.settings, w.revisions, n) // a hash collision with another template
	}
	return built
}

// recordRevision ensures that the revision of the spec exists and has the highest number.
func recordRevision(f *facts, p *plan) {
	switch {
	case f.specRefused():
		p.tryLater(f, reasonRevision)
		if len(f.revisions) == 0 {
			p.Stop() // without a revision no member can be created
		}
	case f.spec.UID == "":
		p.Then(action.Chain{{Verb: action.Create, Object: f.spec, Reason: reasonRevision}})
	case !revision.Latest(f.revisions, f.spec):
		p.Then(action.Chain{{Verb: action.Patch, Object: revision.Promote(f.revisions, f.spec), From: f.spec,
			Reason: reasonRevision, Detail: "the template matches an older revision"}})
	}
}

// keepBudget creates or patches the PodDisruptionBudget for replacement.maxConcurrent and
// onEviction. A budget of that name with another owner is left alone.
func keepBudget(f *facts, p *plan) {
	want, have := buildBudget(f.settings, f.wanted()), f.budget
	change := action.Action{Verb: action.Create, Object: want, Reason: reasonBudget}
	if have != nil {
		if f.foreignBudget() || have.DeletionTimestamp != nil {
			return
		}
		changed, differs := owned.Budget(have, want)
		if !differs {
			return
		}
		change = action.Action{Verb: action.Patch, Object: changed, From: have, Unchanged: true, Reason: reasonBudget}
	}
	if f.refusedNow(reasonBudget) {
		p.tryLater(f, reasonBudget)
		return
	}
	p.Then(action.Chain{change})
}

// foreignBudget reports whether the budget with the set's name has another owner.
func (w *world) foreignBudget() bool {
	return w.budget != nil && !controls(w.set, w.budget)
}

// unseenBudget reports whether the set's budget lacks the label by which the cache selects it.
func (w *world) unseenBudget() bool {
	return w.budget != nil && w.budget.Labels[v1alpha1.LabelCluster] == ""
}

// yes is the value of an annotation that is set.
const yes = "true"

// everReady reports whether a member of that revision was ever Ready.
func (w *world) everReady(name string) bool {
	return w.marked(name, v1alpha1.AnnotationRevisionReady)
}

// marked reports whether a revision has the annotation.
func (w *world) marked(name, mark string) bool {
	rev := w.named(name)
	return rev != nil && rev.Annotations[mark] == yes
}

// markReady annotates the revisions that work: those with a member that was ever Ready, and those
// with a member that was Ready for settlingTime.
func markReady(f *facts, p *plan) {
	if f.refusedNow(reasonRevisionOK) {
		p.tryLater(f, reasonRevisionOK)
		return
	}
	works := map[string]bool{}
	for _, m := range f.alive {
		if m.works() {
			works[m.revision()] = true
		}
	}
	var chains []action.Chain
	for _, rev := range f.revisions {
		if !works[rev.Name] || f.marked(rev.Name, v1alpha1.AnnotationRevisionProven) {
			continue
		}
		proven := f.proven(rev.Name)
		if !proven {
			p.lookAgain(f.provenAt(rev.Name))
		}
		if proven || !f.everReady(rev.Name) {
			chains = append(chains, action.Chain{{Verb: action.Patch, Object: markedReady(rev, proven), From: rev, Reason: reasonRevisionOK}})
		}
	}
	p.Then(chains...)
}

// markedReady returns the revision with the annotation that a member was Ready, and if proven, with
// the annotation for that too.
func markedReady(rev *appsv1.ControllerRevision, proven bool) *appsv1.ControllerRevision {
	marked := rev.DeepCopy()
	if marked.Annotations == nil {
		marked.Annotations = map[string]string{}
	}
	marked.Annotations[v1alpha1.AnnotationRevisionReady] = yes
	if proven {
		marked.Annotations[v1alpha1.AnnotationRevisionProven] = yes
	}
	return marked
}

// maxRevisions is the max number of old revisions that are kept, and maxHistory the max size of
// all of them in bytes: the operator holds them in memory.
const maxRevisions, maxHistory = 100, 2 << 20

// largest returns the size of the largest revision in bytes, at least 1.
func largest(revisions []*appsv1.ControllerRevision) int {
	most := 1
	for _, rev := range revisions {
		most = max(most, len(rev.Data.Raw))
	}
	return most
}

// trimHistory deletes the oldest revisions that are not in use.
func trimHistory(f *facts, p *plan) {
	if f.refusedNow(reasonHistory) {
		p.tryLater(f, reasonHistory)
		return
	}
	used := []string{f.target.Name, f.set.Status.CurrentRevision}
	for _, m := range f.members {
		used = append(used, m.revision())
	}
	for _, e := range f.returning {
		used = append(used, e.Revision)
	}
	limit := min(max(0, int(*f.set.Spec.RevisionHistoryLimit)), maxRevisions, maxHistory/largest(f.revisions))
	inUse := func(name string) bool { return slices.Contains(used, name) }
	var chains []action.Chain
	for _, rev := range revision.Surplus(f.revisions, limit, inUse) {
		chains = append(chains, action.Chain{{Verb: action.Delete, Object: rev, Reason: reasonHistory}})
	}
	p.Then(chains...)
}
