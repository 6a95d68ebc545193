package statefulcluster

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// rollOut updates members to the target revision, at most maxUnavailable at a time.
func rollOut(f *facts, p *plan) {
	if !f.rolling() {
		return
	}
	available, changes := f.countAvailable()
	p.lookAgain(changes...)
	spare := available - (f.replicas() - f.maxUnavailable())
	if len(f.unsettled) > 0 {
		spare = 0 // available members do not get a template that may crash
	}
	old := f.outdated()
	if f.maxSurge() > 0 {
		replaceOld(f, p, old, spare)
		return
	}
	old = slices.DeleteFunc(old, f.waitsForSuccessor)
	update(f, p, affordable(f.world, old, spare))
}

// replaceOld retires members of old revisions when new members replace them. A member that may have
// data, Ready or not, is retired only for a new member that is available, and not in an outage.
func replaceOld(f *facts, p *plan, old []*member, spare int) {
	surplus := f.occupied() - f.replicas()
	available := surplus // available new members
	for _, m := range f.alive {
		if m.revision() == f.target.Name && !f.serves(m) {
			available--
		}
	}
	var empty, others []*member
	for _, m := range old {
		serves := f.serves(m)
		if serves && spare <= 0 {
			continue
		}
		if kept, until := keptInOutage(f, m); kept && !serves {
			p.lookAgain(until)
			continue
		}
		if mayHaveData(m) {
			others = append(others, m)
		} else {
			empty = append(empty, m)
		}
	}
	first := affordable(f.world, firstToGo(f, empty, surplus), spare)
	left := min(surplus-len(first), available)
	retire(f, p, append(first, affordable(f.world, firstToGo(f, others, left), spare)...))
}

// affordable returns the members that can be taken down while spare available members may become
// unavailable. Members that are not available cost nothing.
func affordable(w *world, members []*member, spare int) []*member {
	var now []*member
	for _, m := range members {
		if w.serves(m) {
			if spare <= 0 {
				continue
			}
			spare--
		}
		now = append(now, m)
	}
	return now
}

// update updates members in place if possible, and recreates the others under their names: first
// they are recorded in status.updating, then their pods are deleted.
func update(f *facts, p *plan, members []*member) {
	var chains []action.Chain
	var again []*member
	to, _ := dataOf(f.target)
	for _, m := range members {
		chain, ok := inPlace(f, m)
		if !ok && !f.refusedNow(reasonExpand) {
			chain = expandClaims(f.world, m, to) // its pod is recreated when they have been expanded
		}
		switch {
		case len(chain) == 0:
			again = append(again, m)
		case ok && f.refusedNow(reasonUpdated):
			p.tryLater(f, reasonUpdated) // it stays unchanged until then
		default:
			chains = append(chains, chain)
		}
	}
	p.Then(chains...)
	if len(chains) == 0 {
		renew(f, p, again, f.target.Name)
	}
}

// renewReasons are the reasons of the writes of an update that recreates pods.
var renewReasons = []string{reasonTrial, reasonUpdate}

// renew recreates members for an update, with the given revision, or with their own if it is "". A
// dry-run create of the first new pod must succeed before, since otherwise that member would stay
// missing. Only passes that delete pods make this check. A successful check is not remembered,
// because the next one may be refused.
func renew(f *facts, p *plan, members []*member, revision string) {
	if len(members) == 0 {
		return
	}
	if slices.ContainsFunc(renewReasons, f.refusedNow) {
		p.tryLater(f, renewReasons...)
		return
	}
	first := members[0]
	pod := returned(f.world, f.revisionFor(cmp.Or(revision, first.revision())), first.id, v1alpha1.UpdatingUpdate)
	p.Then(action.Chain{{Verb: action.Try, Object: pod, From: first.pod, Reason: reasonTrial, Detail: "dry run before pods are deleted for the update"}})
	recreate(f, p, members, revision)
}

// recreateBatch bounds the number of entries that one pass adds to status.updating, so that the
// object stays far below the etcd limit (1.5 MiB).
const recreateBatch = 500

// recreate deletes the pods of members that will return with the given revision, or with their own
// if it is "".
func recreate(f *facts, p *plan, members []*member, revision string) {
	if len(members) == 0 {
		return
	}
	if f.refusedNow(reasonUpdate) {
		p.tryLater(f, reasonUpdate)
		return
	}
	var deletes []action.Chain
	for _, m := range members[:min(len(members), recreateBatch)] {
		entry := v1alpha1.UpdatingMember{Name: m.name(), UID: m.pod.UID, Revision: cmp.Or(revision, m.revision())}
		if revision == "" && !blamed(f, m) {
			entry.Reason = v1alpha1.UpdatingEviction // the Node ended it, so its template is not the cause
		}
		p.updating = append(p.updating, entry)
		deletes = append(deletes, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonUpdate,
			Detail: "the pod will be recreated with the same name and claims"}})
	}
	p.record(f, reasonUpdate)
	p.Then(deletes...)
}

// staysOld returns how many of the returning members the partition keeps at their revision.
func (f *facts) staysOld() int { return max(0, f.partition()-len(f.notAt(f.target))) }

// bringBack recreates the pods of members in status.updating whose old pod is gone. In a rolling
// update they get the revision of the current spec, because a member that is not available is
// updated first, and because the API server may refuse the recorded revision while the spec was
// corrected since. A member whose claims are gone cannot return: its entry is dropped, and a new
// member fills its slot.
func bringBack(f *facts, p *plan) {
	var chains []action.Chain
	staysOld := f.staysOld()
	for _, e := range f.returning {
		id := f.idOf(e.Name)
		if f.hasPod(id) || f.orphanIDs[id] {
			continue // its old pod still exists, or a pod that is not a member has its name
		}
		if !f.hasClaims(id) {
			p.updating = slices.DeleteFunc(p.updating, func(u v1alpha1.UpdatingMember) bool { return u.Name == e.Name })
			p.dropped = append(p.dropped, e.Name)
			continue
		}
		rev, why := f.revisionFor(e.Revision), cmp.Or(e.Reason, v1alpha1.UpdatingUpdate)
		if f.rolling() && rev.Name != f.target.Name {
			if staysOld--; staysOld < 0 {
				rev, why = f.target, v1alpha1.UpdatingUpdate
			}
		}
		chains = append(chains, action.Chain{{Verb: action.Create, Object: returned(f.world, rev, id, why), Reason: reasonReturned,
			Detail: "recreated with the same name and claims"}})
	}
	switch {
	case len(p.updating) < len(f.returning):
		p.record(f, reasonUpdate)
	case f.refusedNow(reasonReturned):
		p.tryLater(f, reasonReturned)
	default:
		p.Then(chains...)
	}
}

// returned returns the pod with which a member returns.
func returned(w *world, rev *appsv1.ControllerRevision, id string, why v1alpha1.UpdatingReason) *corev1.Pod {
	pod := buildPod(w.settings, rev, id)
	pod.Annotations[v1alpha1.AnnotationUpdated] = string(why)
	return pod
}

// hasPod reports whether a member pod with that id exists.
func (w *world) hasPod(id string) bool {
	return slices.ContainsFunc(w.members, func(m *member) bool { return m.id == id })
}

// hasClaims reports whether all claims of an id without a pod exist.
func (w *world) hasClaims(id string) bool {
	n := 0
	for _, c := range w.loose {
		if memberOf(c) == id && c.DeletionTimestamp == nil && !isRetained(c) {
			n++
		}
	}
	return n >= len(w.set.Spec.VolumeClaimTemplates)
}
