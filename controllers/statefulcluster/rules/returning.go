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
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// A member returns if its pod is deleted and recreated with the same name and claims. It is recorded in
// status.updating before its pod is deleted (recreate), or while that pod is being deleted by others
// (keepEvicted). A later pass creates the new pod (bringBack).

// keepEvicted adds members to status.updating whose pods were evicted, were disrupted in an outage, or
// vanished.
func keepEvicted(f *facts.Facts, p *Plan) {
	entries := slices.Clone(p.Updating)
	for _, m := range f.Departed {
		if f.KeepsEvicted(m) {
			entries = append(entries, v1alpha1.UpdatingMember{Name: m.Name(), UID: m.Pod.UID, Revision: m.Revision(),
				Reason: v1alpha1.UpdatingEviction})
		}
	}
	for _, name := range facts.ReturningVanished(f) {
		// The revision of the member is unknown, because its pod is gone. It gets the revision that
		// an update would give it. Its template is blamed for unreadiness only if no member of that
		// revision was ever Ready.
		entries = append(entries, v1alpha1.UpdatingMember{Name: name, Revision: f.Target.Name, Reason: v1alpha1.UpdatingEviction})
	}
	if len(entries) > len(p.Updating) {
		p.Updating = entries
		p.record(f, facts.ReasonUpdate)
	}
}

// restartEnded recreates members whose pods ended and that are not lost: onEviction keeps them, no
// member is Ready, or their template may be the cause, so that a new member would end in the same way.
func restartEnded(f *facts.Facts, p *Plan) {
	var due []*facts.Member
	for _, m := range f.Alive {
		kept, _ := facts.KeptInOutage(f, m)
		if returns := kept || facts.Blamed(f, m) || f.KeepsEnded(m); !m.Ended() || !returns {
			continue
		}
		if facts.Blamed(f, m) {
			p.Failing = append(p.Failing, m.Name())
		}
		at := m.Pod.CreationTimestamp.Add(spec.EndedBackoff)
		p.RequeueAt(at)
		if f.Reached(at) {
			due = append(due, m)
		}
	}
	recreate(f, p, due, "")
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

// countStaying returns how many returning members the partition keeps at their revision: as many as it
// has in addition to the alive members of old revisions.
func countStaying(f *facts.Facts) int { return max(0, f.Partition()-len(f.NotAt(f.Target))) }

// bringBack recreates the pods of members in status.updating whose old pod is gone. In a rolling
// update they get the revision of the current spec, because a member that is not available is
// updated first, and because the API server may refuse the recorded revision while the spec was
// corrected since. A member whose claims are gone cannot return: its entry is dropped, and a new
// member fills its slot.
func bringBack(f *facts.Facts, p *Plan) {
	var chains []action.Chain
	keep := countStaying(f)
	for _, e := range f.Returning {
		id := f.IDOf(e.Name)
		if f.HasPod(id) || f.OrphanIDs[id] {
			continue // its old pod still exists, or an orphan has its name
		}
		if !f.HasClaims(id) {
			p.Updating = slices.DeleteFunc(p.Updating, func(u v1alpha1.UpdatingMember) bool { return u.Name == e.Name })
			p.Dropped = append(p.Dropped, e.Name)
			continue
		}
		rev, why := f.RevisionFor(e.Revision), cmp.Or(e.Reason, v1alpha1.UpdatingUpdate)
		if f.Rolling() && rev.Name != f.Target.Name {
			if keep--; keep < 0 {
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

// returned builds the new pod of a returning member. why is the reason for which it returns.
func returned(w *facts.World, rev *appsv1.ControllerRevision, id string, why v1alpha1.UpdatingReason) *corev1.Pod {
	pod := children.BuildPod(w.Settings, rev, id)
	pod.Annotations[v1alpha1.AnnotationUpdated] = string(why)
	return pod
}
