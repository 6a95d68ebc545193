package rules

import (
	"cmp"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// affordable returns the members that can be stopped at the same time, if at most spare available
// members may become unavailable. All members that are not available are among them.
func affordable(w *facts.World, members []*facts.Member, spare int) []*facts.Member {
	var now []*facts.Member
	for _, m := range members {
		if w.Serves(m) {
			if spare <= 0 {
				continue
			}
			spare--
		}
		now = append(now, m)
	}
	return now
}

// retire labels the claims of each member with Scaled, and then deletes the pod. After a crash in
// between, the label shows that the deletion is not a loss.
func retire(f *facts.Facts, p *Plan, members []*facts.Member) {
	var chains []action.Chain
	for _, m := range members {
		var chain action.Chain
		for _, c := range m.SortedClaims() {
			policy := f.Retention().WhenScaled
			if !facts.RetainedAs(c, v1alpha1.RetainedScaled) {
				chain = append(chain, retain(c, v1alpha1.RetainedScaled, policy))
			}
		}
		detail := claimsFate(m)
		if f.Leaves(m) {
			detail = "its node is cordoned, " + detail
		}
		chains = append(chains, append(chain, action.Action{Verb: action.Delete, Object: m.Pod,
			Reason: facts.ReasonRetired, Detail: detail}))
	}
	p.Then(chains...)
}

// surplusMembers picks n members to retire. They may include lost members whose pod exists.
func surplusMembers(f *facts.Facts, n int) []*facts.Member {
	left := slices.Clone(f.Alive)
	for _, l := range f.Lost {
		if !l.Terminating() {
			left = append(left, l.Member)
		}
	}
	return firstToGo(f, left, n)
}

// firstToGo picks n of the given members, in scale-down order: members whose claims are already
// labelled for a scale-down (the deletion of the pod may be in progress), marked by the user, lost,
// never Ready, unscheduled, not Ready, on a cordoned Node that they leave, of an older revision, on
// the most crowded Node, youngest.
func firstToGo(f *facts.Facts, left []*facts.Member, n int) []*facts.Member {
	left = slices.Clone(left)
	perNode, lost := map[string]int{}, map[*facts.Member]bool{}
	for _, m := range f.Alive {
		perNode[m.Pod.Spec.NodeName]++
	}
	for _, l := range f.Lost {
		perNode[l.Pod.Spec.NodeName]++
		lost[l.Member] = true
	}
	var picked []*facts.Member
	for len(picked) < n && len(left) > 0 {
		first := slices.MinFunc(left, func(a, b *facts.Member) int {
			return cmp.Or(
				facts.YesFirst(f.WasRetired(a), f.WasRetired(b)),
				facts.YesFirst(a.DeleteFirst(), b.DeleteFirst()),
				facts.YesFirst(lost[a], lost[b]),
				facts.YesFirst(facts.WasNeverReady(a), facts.WasNeverReady(b)),
				facts.YesFirst(!a.Scheduled(), !b.Scheduled()),
				facts.YesFirst(!a.Ready(), !b.Ready()),
				facts.YesFirst(f.Leaves(a), f.Leaves(b)),
				facts.YesFirst(a.Revision() != f.Target.Name, b.Revision() != f.Target.Name),
				cmp.Compare(perNode[b.Pod.Spec.NodeName], perNode[a.Pod.Spec.NodeName]),
				b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time),
				cmp.Compare(a.Name(), b.Name()))
		})
		perNode[first.Pod.Spec.NodeName]--
		picked = append(picked, first)
		left = slices.DeleteFunc(left, func(m *facts.Member) bool { return m == first })
	}
	return picked
}
