package rules

import (
	"cmp"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// rollOut updates members to the target revision, at most maxUnavailable at a time.
func rollOut(f *facts.Facts, p *Plan) {
	if !f.Rolling() {
		return
	}
	available, changes := f.CountAvailable()
	p.RequeueAt(changes...)
	spare := available - (f.Replicas() - f.MaxUnavailable())
	if len(f.Unsettled) > 0 {
		spare = 0 // available members do not get a template that may crash
	}
	old := f.Outdated()
	if f.MaxSurge() > 0 {
		replaceOld(f, p, old, spare)
		return
	}
	old = slices.DeleteFunc(old, func(m *facts.Member) bool { return waitsForSuccessor(f, m) })
	update(f, p, affordable(f.World, old, spare))
}

// replaceOld retires members of old revisions when new members replace them. A member that may have
// data, Ready or not, is retired only for a new member that is available, and not in an outage.
func replaceOld(f *facts.Facts, p *Plan, old []*facts.Member, spare int) {
	surplus := f.Occupied() - f.Replicas()
	available := surplus // the number of new members that are available
	for _, m := range f.Alive {
		if m.Revision() == f.Target.Name && !f.Serves(m) {
			available--
		}
	}
	var empty, others []*facts.Member
	for _, m := range old {
		serves := f.Serves(m)
		if serves && spare <= 0 {
			continue
		}
		if kept, until := facts.KeptInOutage(f, m); kept && !serves {
			p.RequeueAt(until)
			continue
		}
		if facts.MayHaveData(m) {
			others = append(others, m)
		} else {
			empty = append(empty, m)
		}
	}
	first := affordable(f.World, firstToGo(f, empty, surplus), spare)
	left := min(surplus-len(first), available)
	retire(f, p, append(first, affordable(f.World, firstToGo(f, others, left), spare)...))
}

// update updates members in place if possible, and recreates the pods of the others. Claims are
// expanded before the pods that use them are deleted, so pods are deleted only by a pass that has
// nothing else to do.
func update(f *facts.Facts, p *Plan, members []*facts.Member) {
	var chains []action.Chain
	var rest []*facts.Member
	to, _ := children.DataOf(f.Target)
	for _, m := range members {
		chain, ok := inPlace(f, m)
		if !ok && !f.RefusedNow(facts.ReasonExpand) {
			chain = expandClaims(f.World, m, to) // its pod is recreated when they have been expanded
		}
		switch {
		case len(chain) == 0:
			rest = append(rest, m)
		case ok && f.RefusedNow(facts.ReasonUpdated):
			p.tryLater(f, facts.ReasonUpdated) // it stays unchanged until then
		default:
			chains = append(chains, chain)
		}
	}
	p.Then(chains...)
	if len(chains) == 0 {
		renew(f, p, rest, f.Target.Name)
	}
}

// renewReasons are the reasons of the writes of renew.
var renewReasons = []string{facts.ReasonTrial, facts.ReasonUpdate}

// renew recreates members for an update, with the given revision, or with their own if it is "". Unlike
// recreate, it first creates the new pod of the first member in a dry run. If the API server refuses
// it, no pod is deleted, since otherwise that member would stay missing. A success is not remembered,
// because the API server may refuse the next pod.
func renew(f *facts.Facts, p *Plan, members []*facts.Member, revision string) {
	if len(members) == 0 {
		return
	}
	if slices.ContainsFunc(renewReasons, f.RefusedNow) {
		p.tryLater(f, renewReasons...)
		return
	}
	first := members[0]
	pod := returned(f.World, f.RevisionFor(cmp.Or(revision, first.Revision())), first.ID, v1alpha1.UpdatingUpdate)
	p.Then(action.Chain{{Verb: action.Try, Object: pod, From: first.Pod, Reason: facts.ReasonTrial, Detail: "dry run before pods are deleted for the update"}})
	recreate(f, p, members, revision)
}
