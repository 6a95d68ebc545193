package statefulcluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
)

// target is the revision of the present spec: the recorded one, or the one
// that recordRevision will create.
func (w *world) target() *appsv1.ControllerRevision {
	if w.targetRevision == nil {
		w.targetRevision = buildRevision(w)
		if have := revision.Same(w.revisions, w.targetRevision); have != nil {
			w.targetRevision = have
			return have
		}
		for n := int32(1); w.named(w.targetRevision.Name) != nil; n++ {
			w.targetRevision = hashedAgain(w, n) // another template has this hash
		}
	}
	return w.targetRevision
}

// recordRevision makes the revision of the spec exist, with the highest number.
func recordRevision(w *world, r *roster, p *plan) {
	target := w.target()
	if target.UID == "" && w.refusedNow(reasonRevision, p) {
		// What is lost is replaced all the same, by the last that is on record.
		if len(w.revisions) == 0 {
			p.Stop() // nothing can be made at all
			return
		}
		w.targetRevision = w.revisions[len(w.revisions)-1]
		r.target = w.targetRevision.Name
		return
	}
	if target.UID == "" {
		p.Then(action.Chain{{Verb: action.Create, Object: target, Reason: reasonRevision}})
		return
	}
	if !revision.Latest(w.revisions, target) {
		p.Then(action.Chain{{Verb: action.Patch, Object: revision.Promote(w.revisions, target), From: target,
			Reason: reasonRevision, Detail: "the template is an old one again"}})
	}
}

// keepBudget keeps the PodDisruptionBudget as replacement.maxConcurrent says.
// A budget of that name that is not ours is left alone.
func keepBudget(w *world, _ *roster, p *plan) {
	want := buildBudget(w)
	if w.budget == nil {
		if !w.refusedNow(reasonBudget, p) {
			p.Then(action.Chain{{Verb: action.Create, Object: want, Reason: reasonBudget}})
		}
		return
	}
	if !metav1.IsControlledBy(w.budget, w.set) || w.budget.DeletionTimestamp != nil ||
		apiequality.Semantic.DeepEqual(w.budget.Spec, want.Spec) || w.refusedNow(reasonBudget, p) {
		return
	}
	changed := w.budget.DeepCopy()
	changed.Spec = want.Spec
	p.Then(action.Chain{{Verb: action.Patch, Object: changed, From: w.budget, Reason: reasonBudget}})
}

// yes is the value of an annotation that is a mark.
const yes = "true"

// everReady reports whether a member of that revision was ever Ready.
func (w *world) everReady(name string) bool {
	return w.noted(name, v1alpha1.AnnotationRevisionReady)
}

// noted reports whether a revision bears a mark.
func (w *world) noted(name, mark string) bool {
	rev := revision.ByName(w.revisions, name)
	return rev != nil && rev.Annotations[mark] == yes
}

// markReady writes on the revisions which of them work: those of which a member was
// Ready once, and those of which one was Ready for settlingTime.
func markReady(w *world, r *roster, p *plan) {
	if w.refusedNow(reasonRevisionOK, p) {
		return
	}
	good := map[string]bool{}
	for _, m := range r.alive {
		if podstate.Ready(m.pod) && m.pod.Annotations[v1alpha1.AnnotationInPlace] == "" {
			good[revisionOf(m.pod)] = true
		}
	}
	var chains []action.Chain
	for _, rev := range w.revisions {
		if !good[rev.Name] || w.noted(rev.Name, v1alpha1.AnnotationRevisionProven) {
			continue
		}
		marked := rev.DeepCopy()
		if marked.Annotations == nil {
			marked.Annotations = map[string]string{}
		}
		marked.Annotations[v1alpha1.AnnotationRevisionReady] = yes
		if proven(w, rev.Name) {
			marked.Annotations[v1alpha1.AnnotationRevisionProven] = yes
		} else {
			if at, ok := provenAt(w, rev.Name); ok {
				p.lookAgain(w, at)
			}
			if w.everReady(rev.Name) {
				continue
			}
		}
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: marked, From: rev, Reason: reasonRevisionOK}})
	}
	p.Then(chains...)
}

// mostRevisions is how many old revisions are kept at most, and mostHistory how many
// bytes of them: they are all in the memory of the operator.
const mostRevisions, mostHistory = 100, 2 << 20

// largest is how many bytes the largest revision has, and at least 1.
func largest(revisions []*appsv1.ControllerRevision) int {
	most := 1
	for _, rev := range revisions {
		most = max(most, len(rev.Data.Raw))
	}
	return most
}

// trimHistory deletes the oldest revisions that nobody uses.
func trimHistory(w *world, r *roster, p *plan) {
	if w.refusedNow(reasonHistory, p) {
		return
	}
	used := []string{r.target, w.set.Status.CurrentRevision}
	for _, m := range w.members {
		used = append(used, revisionOf(m.pod))
	}
	for _, e := range r.returning {
		used = append(used, e.Revision)
	}
	limit := min(max(0, int(*w.set.Spec.RevisionHistoryLimit)), mostRevisions, mostHistory/largest(w.revisions))
	inUse := func(name string) bool { return slices.Contains(used, name) }
	var chains []action.Chain
	for _, rev := range revision.Surplus(w.revisions, limit, inUse) {
		chains = append(chains, action.Chain{{Verb: action.Delete, Object: rev, Reason: reasonHistory}})
	}
	p.Then(chains...)
}
