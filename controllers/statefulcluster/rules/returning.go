package rules

import (
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// keepEvicted adds members that were evicted, or whose pod was disrupted or disappeared unobserved,
// to status.updating, so that they are recreated with their names and claims.
func keepEvicted(f *facts.Facts, p *Plan) {
	entries := slices.Clone(p.Updating)
	for _, m := range f.Departed {
		if f.KeepsEvicted(m) {
			entries = append(entries, v1alpha1.UpdatingMember{Name: m.Name(), UID: m.Pod.UID, Revision: m.Revision(),
				Reason: v1alpha1.UpdatingEviction})
		}
	}
	for _, name := range facts.ReturnsUnseen(f) {
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
