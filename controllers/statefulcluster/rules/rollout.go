package rules

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

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
	available := surplus // available new members
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

// update updates members in place if possible, and recreates the others under their names: first
// they are recorded in status.updating, then their pods are deleted.
func update(f *facts.Facts, p *Plan, members []*facts.Member) {
	var chains []action.Chain
	var again []*facts.Member
	to, _ := children.DataOf(f.Target)
	for _, m := range members {
		chain, ok := inPlace(f, m)
		if !ok && !f.RefusedNow(facts.ReasonExpand) {
			chain = expandClaims(f.World, m, to) // its pod is recreated when they have been expanded
		}
		switch {
		case len(chain) == 0:
			again = append(again, m)
		case ok && f.RefusedNow(facts.ReasonUpdated):
			p.tryLater(f, facts.ReasonUpdated) // it stays unchanged until then
		default:
			chains = append(chains, chain)
		}
	}
	p.Then(chains...)
	if len(chains) == 0 {
		renew(f, p, again, f.Target.Name)
	}
}

// renewReasons are the reasons of the writes of an update that recreates pods.
var renewReasons = []string{facts.ReasonTrial, facts.ReasonUpdate}

// renew recreates members for an update, with the given revision, or with their own if it is "". A
// dry-run create of the first new pod must succeed before, since otherwise that member would stay
// missing. Only passes that delete pods make this check. A successful check is not remembered,
// because the next one may be refused.
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

// RecreateBatch bounds the number of entries that one pass adds to status.updating, so that the
// object stays far below the etcd limit (1.5 MiB).
const RecreateBatch = 500

// recreate deletes the pods of members that will return with the given revision, or with their own
// if it is "".
func recreate(f *facts.Facts, p *Plan, members []*facts.Member, revision string) {
	if len(members) == 0 {
		return
	}
	if f.RefusedNow(facts.ReasonUpdate) {
		p.tryLater(f, facts.ReasonUpdate)
		return
	}
	var deletes []action.Chain
	for _, m := range members[:min(len(members), RecreateBatch)] {
		entry := v1alpha1.UpdatingMember{Name: m.Name(), UID: m.Pod.UID, Revision: cmp.Or(revision, m.Revision())}
		if revision == "" && !facts.Blamed(f, m) {
			entry.Reason = v1alpha1.UpdatingEviction // the Node ended it, so its template is not the cause
		}
		p.Updating = append(p.Updating, entry)
		deletes = append(deletes, action.Chain{{Verb: action.Delete, Object: m.Pod, Reason: facts.ReasonUpdate,
			Detail: "the pod will be recreated with the same name and claims"}})
	}
	p.record(f, facts.ReasonUpdate)
	p.Then(deletes...)
}

// countStaying returns how many of the returning members the partition keeps at their revision.
func countStaying(f *facts.Facts) int { return max(0, f.Partition()-len(f.NotAt(f.Target))) }

// bringBack recreates the pods of members in status.updating whose old pod is gone. In a rolling
// update they get the revision of the current spec, because a member that is not available is
// updated first, and because the API server may refuse the recorded revision while the spec was
// corrected since. A member whose claims are gone cannot return: its entry is dropped, and a new
// member fills its slot.
func bringBack(f *facts.Facts, p *Plan) {
	var chains []action.Chain
	staysOld := countStaying(f)
	for _, e := range f.Returning {
		id := f.IDOf(e.Name)
		if f.HasPod(id) || f.OrphanIDs[id] {
			continue // its old pod still exists, or a pod that is not a member has its name
		}
		if !f.HasClaims(id) {
			p.Updating = slices.DeleteFunc(p.Updating, func(u v1alpha1.UpdatingMember) bool { return u.Name == e.Name })
			p.Dropped = append(p.Dropped, e.Name)
			continue
		}
		rev, why := f.RevisionFor(e.Revision), cmp.Or(e.Reason, v1alpha1.UpdatingUpdate)
		if f.Rolling() && rev.Name != f.Target.Name {
			if staysOld--; staysOld < 0 {
				rev, why = f.Target, v1alpha1.UpdatingUpdate
			}
		}
		chains = append(chains, action.Chain{{Verb: action.Create, Object: returned(f.World, rev, id, why), Reason: facts.ReasonReturned,
			Detail: "recreated with the same name and claims"}})
	}
	switch {
	case len(p.Updating) < len(f.Returning):
		p.record(f, facts.ReasonUpdate)
	case f.RefusedNow(facts.ReasonReturned):
		p.tryLater(f, facts.ReasonReturned)
	default:
		p.Then(chains...)
	}
}

// returned returns the pod with which a member returns.
func returned(w *facts.World, rev *appsv1.ControllerRevision, id string, why v1alpha1.UpdatingReason) *corev1.Pod {
	pod := children.BuildPod(w.Settings, rev, id)
	pod.Annotations[v1alpha1.AnnotationUpdated] = string(why)
	return pod
}
