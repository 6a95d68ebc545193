package statefulcluster

import (
	"cmp"
	"slices"
	"strings"

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
	old := outdated(w, r)
	spare := countAvailable(w, r.alive, p) - (int(*w.set.Spec.Replicas) - w.maxUnavailable())
	var now []*member
	for _, m := range old {
		if ok, _ := available(w, m); !ok {
			now = append(now, m) // it is not serving: nothing is lost by an update
		} else if spare > 0 {
			spare--
			now = append(now, m)
		}
	}
	if w.maxSurge() > 0 {
		surplus := r.occupied() - int(*w.set.Spec.Replicas)
		retire(w, p, now[:max(0, min(surplus, len(now)))])
		return
	}
	update(w, r, p, now)
}

// update changes members in place where it can, and recreates the others under
// their names: first status.updating says so, then the pods are deleted.
func update(w *world, r *roster, p *plan, members []*member) {
	var chains []action.Chain
	var again []*member
	for _, m := range members {
		if chain, ok := inPlace(w, m); !ok {
			again = append(again, m)
		} else if !w.refusedNow(reasonExpand, p) || !expands(chain) {
			chains = append(chains, chain)
		}
	}
	p.do(chains...)
	if len(chains) == 0 {
		recreate(w, p, again, r.target)
	}
}

func recreate(w *world, p *plan, members []*member, revision string) {
	if len(members) == 0 {
		return
	}
	var deletes []action.Chain
	for _, m := range members {
		p.updating = append(p.updating, v1alpha1.UpdatingMember{Name: m.name(), UID: m.pod.UID, Revision: revision})
		deletes = append(deletes, action.Chain{{Verb: action.Delete, Object: m.pod, Unchanged: true, Reason: reasonUpdate,
			Detail: "the pod comes back under its name on its claims"}})
	}
	p.do(action.Chain{recordUpdating(w, p.updating)})
	p.do(deletes...)
}

// recordUpdating writes status.updating, before what it names is deleted.
func recordUpdating(w *world, entries []v1alpha1.UpdatingMember) action.Action {
	set := w.set.DeepCopy()
	set.Status.Updating = entries
	return action.Action{Verb: action.PatchStatus, Object: set, From: w.set, Reason: reasonUpdate}
}

// keepEvicted writes evicted members into status.updating while their pods
// terminate, so that they come back as themselves.
func keepEvicted(w *world, r *roster, p *plan) {
	if w.set.Spec.Replacement.OnEviction != v1alpha1.EvictionKeeps {
		return
	}
	entries := slices.Clone(p.updating)
	for _, m := range r.departed {
		if podstate.Evicted(m.pod) && !w.wasRetired(m) && !r.succeeded[m.name()] {
			entries = append(entries, v1alpha1.UpdatingMember{Name: m.name(), UID: m.pod.UID, Revision: revisionOf(m.pod)})
		}
	}
	if len(entries) > len(p.updating) {
		p.do(action.Chain{recordUpdating(w, entries)})
		p.updating = entries
	}
}

// bringBack recreates the pods that status.updating names and that are gone. A
// member whose claims went meanwhile cannot come back: its entry is dropped
// and a new member takes its place.
func bringBack(w *world, r *roster, p *plan) {
	var chains []action.Chain
	for _, e := range r.returning {
		id := strings.TrimPrefix(e.Name, w.set.Name+"-")
		if slices.ContainsFunc(w.members, func(m *member) bool { return m.id == id }) {
			continue // its old pod is still there
		}
		if !w.hasClaims(id) {
			p.updating = slices.DeleteFunc(p.updating, func(u v1alpha1.UpdatingMember) bool { return u.Name == e.Name })
			continue
		}
		pod := buildPod(w, w.revisionFor(e.Revision), id)
		pod.Annotations[v1alpha1.AnnotationUpdated] = "true"
		chains = append(chains, action.Chain{{Verb: action.Create, Object: pod, Reason: reasonReturned,
			Detail: "the same member on the same claims"}})
	}
	if len(p.updating) < len(r.returning) {
		p.do(action.Chain{recordUpdating(w, p.updating)})
	} else if !w.refusedNow(reasonReturned, p) {
		p.do(chains...)
	}
}

// hasClaims tells whether all claims of an id without a pod are there.
func (w *world) hasClaims(id string) bool {
	n := 0
	for _, c := range w.loose {
		if c.Labels[v1alpha1.LabelMember] == id && c.DeletionTimestamp == nil && c.Labels[v1alpha1.LabelRetained] == "" {
			n++
		}
	}
	return n >= len(w.set.Spec.VolumeClaimTemplates)
}
