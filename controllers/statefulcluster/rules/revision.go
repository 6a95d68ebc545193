package rules

import (
	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// recordRevision ensures that the revision of the spec exists and has the highest number.
func recordRevision(f *facts.Facts, p *Plan) {
	switch {
	case f.SpecRefused():
		p.tryLater(f, facts.ReasonRevision)
		if len(f.Revisions) == 0 {
			p.Stop() // without a revision no member can be created
		}
	case f.Spec.UID == "":
		p.Then(action.Chain{{Verb: action.Create, Object: f.Spec, Reason: facts.ReasonRevision}})
	case !revision.Latest(f.Revisions, f.Spec):
		p.Then(action.Chain{{Verb: action.Patch, Object: revision.Promote(f.Revisions, f.Spec), From: f.Spec,
			Reason: facts.ReasonRevision, Detail: "the template matches an older revision"}})
	}
}

// markReady annotates the revisions that work: those with a member that was ever Ready, and those
// with a member that was Ready for SettlingTime.
func markReady(f *facts.Facts, p *Plan) {
	if f.RefusedNow(facts.ReasonRevisionOK) {
		p.tryLater(f, facts.ReasonRevisionOK)
		return
	}
	works := map[string]bool{}
	for _, m := range f.Alive {
		if m.Works() {
			works[m.Revision()] = true
		}
	}
	var chains []action.Chain
	for _, rev := range f.Revisions {
		if !works[rev.Name] || f.Marked(rev.Name, v1alpha1.AnnotationRevisionProven) {
			continue
		}
		proven := f.Proven(rev.Name)
		if !proven {
			p.RequeueAt(f.ProvenAt(rev.Name))
		}
		if proven || !f.EverReady(rev.Name) {
			chains = append(chains, action.Chain{{Verb: action.Patch, Object: markedReady(rev, proven), From: rev, Reason: facts.ReasonRevisionOK}})
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
	marked.Annotations[v1alpha1.AnnotationRevisionReady] = facts.Yes
	if proven {
		marked.Annotations[v1alpha1.AnnotationRevisionProven] = facts.Yes
	}
	return marked
}
