package extendedstatefulset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// recoverZones determines the wanted zones and their indexes. Claims are named after the index, so a
// zone must keep its index forever. If the status was lost, for example after the restore of a backup,
// the index is taken from the labels of existing claims and StatefulSets.
func (w *world) recoverZones(sets []appsv1.StatefulSet) {
	known := w.set.Status.DeepCopy()
	see := func(labels map[string]string) {
		name, zoned := labels[v1alpha1.LabelZoneName]
		n, err := strconv.ParseInt(labels[v1alpha1.LabelZoneIndex], 10, 32)
		z := v1alpha1.ZoneStatus{Name: name, Index: int32(n)}
		if !zoned || err != nil || n < 0 ||
			slices.ContainsFunc(known.Zones, func(k v1alpha1.ZoneStatus) bool { return k.Name == z.Name || k.Index == z.Index }) {
			return
		}
		known.Zones, w.seen = append(known.Zones, z), append(w.seen, z)
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		see(w.claims[name].Labels)
	}
	for i := range sets {
		see(sets[i].Labels)
	}
	w.zones = zonesOf(w.set, known)
}

// zonesTurned returns the reason why the zones of the spec cannot be served; "" if they can. Claims
// have different names with and without zones, so a switch would start pods on empty claims.
func (w *world) zonesTurned() string {
	zoned := len(w.set.Spec.Zones) > 0
	turned := turnsZones(w.set, &w.set.Status)
	if w.set.Status.CurrentVersion == 0 {
		turned = len(w.children) > 0 && !slices.ContainsFunc(w.children, func(c *child) bool { return (c.zone != noZone) == zoned })
	}
	if !turned || len(w.set.Spec.Template.Spec.VolumeClaimTemplates) == 0 {
		return ""
	}
	w.zones = nil // count the zones of the existing StatefulSets
	for _, c := range w.children {
		if z := (zone{c.set.Labels[v1alpha1.LabelZoneName], c.zone}); !slices.Contains(w.zones, z) {
			w.zones = append(w.zones, z)
		}
	}
	if len(w.zones) == 0 {
		w.zones = []zone{{index: noZone}}
	}
	return "spec.zones: " + zonesFixed
}

// zonesUsedUp returns the reason if more zones were named than the status can hold; else "". A zone
// that is missing in the status could get the index, and so the claims, of another zone.
func (w *world) zonesUsedUp() string {
	ever := len(w.set.Status.Zones) + len(w.seen)
	for _, z := range w.zones {
		known := func(s v1alpha1.ZoneStatus) bool { return s.Name == z.name }
		if z.index != noZone && !slices.ContainsFunc(w.set.Status.Zones, known) && !slices.ContainsFunc(w.seen, known) {
			ever++
		}
	}
	if ever <= maxZonesEver {
		return ""
	}
	return fmt.Sprintf(
		"spec.zones: %d zones would have been used over time, and at most %d are allowed; reuse earlier zones, or create another object",
		ever, maxZonesEver,
	)
}

const zonesFixed = "claim names contain the zone, so pods would start with new claims; with volumeClaimTemplates, zones can only be set when the object is created"

// turnsZones reports whether a set switches between zones and no zones, compared with status was.
func turnsZones(set *v1alpha1.ExtendedStatefulSet, was *v1alpha1.ExtendedStatefulSetStatus) bool {
	return was.CurrentVersion != 0 && (len(was.Zones) > 0) != (len(set.Spec.Zones) > 0)
}

// claimOfOthers returns the reason if another set uses a claim; else "". For example, template data-db
// of web has the same claim names as template data of db-web.
func claimOfOthers(w *world) string {
	for _, name := range slices.Sorted(maps.Keys(w.foreign)) {
		if w.foreign[name].Labels[v1alpha1.LabelSet] != "" {
			return askOwner(w.set.Namespace, w.set.Name, w.foreign[name])
		}
	}
	return ""
}
