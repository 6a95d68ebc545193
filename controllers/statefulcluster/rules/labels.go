package rules

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// relabel restores the operator's labels on pods, claims and revisions. The cache selects objects
// by these labels.
func relabel(f *facts.Facts, p *Plan) {
	if f.RefusedNow(facts.ReasonRelabel) {
		p.tryLater(f, facts.ReasonRelabel)
		return
	}
	var chains []action.Chain
	for _, m := range f.Members {
		chains = append(chains, putBack(m.Pod, children.MemberLabels(f.Settings, m.ID), "membership depends on the owner, not on labels")...)
		for _, c := range m.SortedClaims() {
			chains = append(chains, putBack(c, children.MemberLabels(f.Settings, m.ID), "")...)
		}
	}
	for _, rev := range f.Revisions {
		chains = append(chains, putBack(rev, children.ClusterLabels(f.Settings), "")...)
	}
	p.Then(chains...)
}

// object is an object that has labels and can be patched.
type object interface {
	metav1.Object
	runtime.Object
}

// putBack returns the chain that adds missing labels to an object; nil if none is missing.
func putBack(obj object, want map[string]string, detail string) []action.Chain {
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want)
	if maps.Equal(labels, obj.GetLabels()) {
		return nil
	}
	found := obj.DeepCopyObject().(object)
	found.SetLabels(labels)
	return []action.Chain{{{Verb: action.Patch, Object: found, From: obj, Reason: facts.ReasonRelabel, Detail: detail}}}
}

// removeLabels removes the labels of members from pods that are not members. The budget of a set selects
// pods by these labels, so for each such pod that is Ready it would allow the eviction of one more
// member. An orphan with the claims of a member keeps the labels until a user decides whether it is one.
func removeLabels(f *facts.Facts, p *Plan) {
	if f.RefusedNow(facts.ReasonForeign) {
		p.tryLater(f, facts.ReasonForeign)
		return
	}
	pods := facts.Outsiders(f.World)
	for _, pod := range pods[:min(len(pods), facts.MaxLabelled)] {
		p.Do(action.RemoveLabels(pod, spec.OwnPodLabels, facts.ReasonForeign, "it is not a member"))
	}
}
