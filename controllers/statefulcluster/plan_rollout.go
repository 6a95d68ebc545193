package statefulcluster

import (
	"cmp"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// rolling tells whether the operator updates members by itself.
func (w *world) rolling() bool {
	return w.set.Spec.UpdateStrategy.Type == v1alpha1.RollingUpdateStrategy
}

// outdated are the members that the update has still to reach, those that are
// not Ready first: they cost nothing. The partition stays out of it.
func outdated(w *world, r *roster) []*member {
	var old []*member
	for _, m := range r.alive {
		if revisionOf(m.pod) != r.target {
			old = append(old, m)
		}
	}
	slices.SortStableFunc(old, func(a, b *member) int {
		return cmp.Or(yesFirst(marked(a), marked(b)),
			yesFirst(!podstate.Ready(a.pod), !podstate.Ready(b.pod)),
			b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time),
			cmp.Compare(a.name(), b.name()))
	})
	return old[:max(0, len(old)-int(w.rollingUpdate().Partition))]
}

// rollOut brings members to the update revision, never more at a time than
// maxUnavailable allows.
func rollOut(w *world, r *roster, p *plan) {
	if !w.rolling() {
		return
	}
	if r.occupied() > wanted(w, r) {
		return // who is to go is no reserve
	}
	old := outdated(w, r)
	spare := countAvailable(w, r.alive, p) - (int(*w.set.Spec.Replicas) - w.maxUnavailable())
	if len(p.shaky) > 0 {
		spare = 0 // who serves is not given the template that may crash
	}
	if w.maxSurge() > 0 {
		surplus := r.occupied() - int(*w.set.Spec.Replicas)
		old = slices.DeleteFunc(old, func(m *member) bool { return spare <= 0 && serves(w, m) })
		retire(w, p, affordable(w, firstToGo(w, r, old, surplus), spare))
		return
	}
	update(w, r, p, affordable(w, old, spare))
}

// affordable are the members that can go while that many may be missing. One
// that is not serving costs nothing.
func affordable(w *world, members []*member, spare int) []*member {
	var now []*member
	for _, m := range members {
		if serves(w, m) {
			if spare <= 0 {
				continue
			}
			spare--
		}
		now = append(now, m)
	}
	return now
}

// update changes members in place where it can, and recreates the others under
// their names: first status.updating says so, then the pods are deleted.
func update(w *world, r *roster, p *plan, members []*member) {
	var chains []action.Chain
	var again []*member
	to, _ := dataOf(w.target())
	for _, m := range members {
		chain, ok := inPlace(w, m)
		if !ok && !w.refusedQuietly(reasonExpand) {
			chain = expandClaims(w, m, to) // its pod is recreated when they have grown
		}
		switch {
		case len(chain) == 0:
			again = append(again, m)
		case expands(chain) && w.refusedNow(reasonExpand, p), ok && w.refusedNow(reasonUpdated, p):
			// It waits as it is.
		default:
			chains = append(chains, chain)
		}
	}
	p.Then(chains...)
	if len(chains) == 0 {
		recreate(w, p, again, r.target)
	}
}

// recreateBatch bounds what one pass adds to status.updating, so that the
// object stays far below what etcd takes (1.5 MiB).
const recreateBatch = 500

// recreate deletes pods that come back with that revision, or with their own
// if it is "".
func recreate(w *world, p *plan, members []*member, revision string) {
	if len(members) == 0 {
		return
	}
	if w.refusedNow(reasonUpdate, p) {
		return
	}
	var deletes []action.Chain
	for _, m := range members[:min(len(members), recreateBatch)] {
		p.updating = append(p.updating, v1alpha1.UpdatingMember{Name: m.name(), UID: m.pod.UID, Revision: cmp.Or(revision, revisionOf(m.pod))})
		deletes = append(deletes, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonUpdate,
			Detail: "the pod comes back under its name on its claims"}})
	}
	p.record(w, reasonUpdate)
	p.Then(deletes...)
}

// record adds the step that writes status.updating and status.creating, before
// what they name is deleted or created.
func (p *plan) record(w *world, reason string) {
	set := w.set.DeepCopy()
	set.Status.Updating, set.Status.Creating = p.updating, p.creating
	p.Then(action.Chain{{Verb: action.PatchStatus, Object: set, From: w.set, Reason: reason}})
	p.recorded = true
	p.Last() // it can be done once on one version of the set
}

// keepEvicted writes evicted members into status.updating while their pods
// terminate, so that they come back as themselves.
func keepEvicted(w *world, r *roster, p *plan) {
	entries := slices.Clone(p.updating)
	for _, m := range r.departed {
		if w.keepsEvicted(r, m) {
			entries = append(entries, v1alpha1.UpdatingMember{Name: m.name(), UID: m.pod.UID, Revision: revisionOf(m.pod),
				Reason: v1alpha1.UpdatingEviction})
		}
	}
	if len(entries) > len(p.updating) {
		p.updating = entries
		p.record(w, reasonUpdate)
	}
}

// keepsEvicted tells whether a departed member was evicted and comes back as
// itself. One that was recorded as lost before does not.
func (w *world) keepsEvicted(r *roster, m *member) bool {
	return w.set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps && podstate.Evicted(m.pod) &&
		!diedReturning(w, m, v1alpha1.UpdatingEviction, &plan{}) &&
		!w.wasRetired(m) && !r.succeeded[m.name()] &&
		!listed(w.set.Status.Lost, m.name())
}

// staysOld is how many of the returning members the partition keeps at the
// revision that they had.
func staysOld(w *world, r *roster) int {
	old := 0
	for _, m := range r.alive {
		if revisionOf(m.pod) != r.target {
			old++
		}
	}
	return max(0, int(w.rollingUpdate().Partition)-old)
}

// bringBack recreates the pods that status.updating names and that are gone. A
// rolling update gives them the revision of the spec as it is now: a member that
// does not serve is the first that it reaches, and the revision on record may be
// one that the API server refuses and that was corrected since. A member whose
// claims went meanwhile cannot come back: its entry is dropped and a new member
// takes its place.
func bringBack(w *world, r *roster, p *plan) {
	var chains []action.Chain
	kept := staysOld(w, r)
	for _, e := range r.returning {
		id := w.idOf(e.Name)
		if slices.ContainsFunc(w.members, func(m *member) bool { return m.id == id }) {
			continue // its old pod is still there
		}
		if !w.hasClaims(id) {
			p.updating = slices.DeleteFunc(p.updating, func(u v1alpha1.UpdatingMember) bool { return u.Name == e.Name })
			continue
		}
		rev, why := w.revisionFor(e.Revision), cmp.Or(e.Reason, v1alpha1.UpdatingUpdate)
		if w.rolling() && rev.Name != r.target {
			if kept--; kept < 0 {
				rev, why = w.target(), v1alpha1.UpdatingUpdate
			}
		}
		pod := buildPod(w, rev, id)
		pod.Annotations[v1alpha1.AnnotationUpdated] = string(why)
		chains = append(chains, action.Chain{{Verb: action.Create, Object: pod, Reason: reasonReturned,
			Detail: "the same member on the same claims"}})
	}
	if len(p.updating) < len(r.returning) {
		p.record(w, reasonUpdate)
	} else if !w.refusedNow(reasonReturned, p) {
		p.Then(chains...)
	}
}

// hasClaims tells whether all claims of an id without a pod are there.
func (w *world) hasClaims(id string) bool {
	n := 0
	for _, c := range w.loose {
		if memberOf(c) == id && c.DeletionTimestamp == nil && c.Labels[v1alpha1.LabelRetained] == "" {
			n++
		}
	}
	return n >= len(w.set.Spec.VolumeClaimTemplates)
}
