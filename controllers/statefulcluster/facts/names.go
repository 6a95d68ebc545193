package facts

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// MemberOf returns the id of the member that a claim belongs to. It is the end of the claim's name. The
// label with the id is ignored, because anyone who may patch the claim can change it.
func MemberOf(c *corev1.PersistentVolumeClaim) string {
	return c.Name[strings.LastIndex(c.Name, "-")+1:]
}

// Listed reports whether status.lost has an entry for a member.
func Listed(lost []v1alpha1.LostMember, name string) bool {
	return slices.ContainsFunc(lost, func(l v1alpha1.LostMember) bool { return l.Name == name })
}

// UnusedIDs returns the ids of the names in status.creating that were not used yet, as far as can be
// seen: no member, claim, loss or entry of status.updating has them.
func UnusedIDs(w *World) []string {
	taken := w.IDs()
	var free []string
	for _, name := range w.Set.Status.Creating {
		id := w.IDOf(name)
		if !taken[id] && !Listed(w.Set.Status.Lost, name) {
			free = append(free, id)
		}
	}
	return free
}

// StillWanted returns the names in status.creating that are needed for empty slots. The others are
// removed, so that a set at rest has none.
func StillWanted(f *Facts) []string {
	free := UnusedIDs(f.World)
	empty := max(0, f.Wanted()-f.Occupied()+len(f.Lost)) // a lost member's slot is filled by a new member
	return f.NamesOf(free[:min(len(free), empty)])
}

// NamesOf returns the names of the members with these ids.
func (w *World) NamesOf(ids []string) []string {
	var names []string
	for _, id := range ids {
		names = append(names, w.NameOf(id))
	}
	return names
}

// FirstIDs returns the ids that new members must use before random ones: those in status.creating, then
// those of claims given to the set.
func FirstIDs(w *World) []string {
	first := UnusedIDs(w)
	for _, id := range w.Offers.IDs() {
		if !slices.Contains(first, id) {
			first = append(first, id)
		}
	}
	return first
}

// HasPod reports whether a member pod with that id exists.
func (w *World) HasPod(id string) bool {
	return slices.ContainsFunc(w.Members, func(m *Member) bool { return m.ID == id })
}

// IDs returns the ids that are in use: by a pod or claim of the set, by a returning member, by an
// orphan, or by a claim of an earlier set that was not given to this one.
func (w *World) IDs() map[string]bool {
	ids := make(map[string]bool, len(w.Members)+len(w.Loose))
	for _, m := range w.Members {
		ids[m.ID] = true
	}
	for _, c := range w.Loose {
		ids[MemberOf(c)] = true
	}
	for _, e := range w.Set.Status.Updating {
		ids[w.IDOf(e.Name)] = true
	}
	maps.Copy(ids, w.Offers.blocked)
	maps.Copy(ids, w.OrphanIDs)
	return ids
}
