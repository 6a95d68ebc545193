package observe

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// RecoverZones determines the wanted zones and their indexes. Claims are named after the index, so a
// zone must keep its index forever. If the status was lost, for example after the restore of a backup,
// the index is taken from the labels of existing claims and StatefulSets.
func RecoverZones(w *facts.World, sets []appsv1.StatefulSet) {
	status := w.Set.Status.DeepCopy()
	recoverZone := func(labels map[string]string) {
		name, zoned := labels[v1alpha1.LabelZoneName]
		n, err := strconv.ParseInt(labels[v1alpha1.LabelZoneIndex], 10, 32)
		z := v1alpha1.ZoneStatus{Name: name, Index: int32(n)}
		if !zoned || err != nil || n < 0 ||
			slices.ContainsFunc(status.Zones, func(k v1alpha1.ZoneStatus) bool { return k.Name == z.Name || k.Index == z.Index }) {
			return
		}
		status.Zones, w.RecoveredZones = append(status.Zones, z), append(w.RecoveredZones, z)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Claims)) {
		recoverZone(w.Claims[name].Labels)
	}
	for i := range sets {
		recoverZone(sets[i].Labels)
	}
	w.Zones = children.ZonesOf(w.Set, status)
}

// zonesSwitched returns the reason why the zones of the spec cannot be served; "" if they can. Claims
// have different names with and without zones, so a switch would start pods on empty claims.
func zonesSwitched(w *facts.World) string {
	zoned := len(w.Set.Spec.Zones) > 0
	switched := spec.SwitchesZones(w.Set, &w.Set.Status)
	if w.Set.Status.CurrentVersion == 0 {
		switched = len(w.Children) > 0 && !slices.ContainsFunc(w.Children, func(c *facts.Child) bool { return (c.Zone != children.NoZone) == zoned })
	}
	if !switched || len(w.Set.Spec.Template.Spec.VolumeClaimTemplates) == 0 {
		return ""
	}
	w.Zones = nil // count the zones of the existing StatefulSets
	for _, c := range w.Children {
		if z := (children.Zone{Name: c.Set.Labels[v1alpha1.LabelZoneName], Index: c.Zone}); !slices.Contains(w.Zones, z) {
			w.Zones = append(w.Zones, z)
		}
	}
	if len(w.Zones) == 0 {
		w.Zones = []children.Zone{{Index: children.NoZone}}
	}
	return "spec.zones: " + spec.ZonesFixed
}

// zonesUsedUp returns the reason why the spec cannot be served if more zones were used over time than
// the status can hold; else "". The status keeps removed zones: a zone that is missing in the status
// could get the index, and so the claims, of another zone.
func zonesUsedUp(w *facts.World) string {
	ever := len(w.Set.Status.Zones) + len(w.RecoveredZones)
	for _, z := range w.Zones {
		same := func(s v1alpha1.ZoneStatus) bool { return s.Name == z.Name }
		if z.Index != children.NoZone && !slices.ContainsFunc(w.Set.Status.Zones, same) && !slices.ContainsFunc(w.RecoveredZones, same) {
			ever++
		}
	}
	if ever <= spec.MaxZonesEver {
		return ""
	}
	return fmt.Sprintf(
		"spec.zones: %d zones would have been used over time, and at most %d are allowed; reuse earlier zones, or create another object",
		ever, spec.MaxZonesEver,
	)
}

// claimOfOtherSet returns the reason why the spec cannot be served if a claim has the label of another
// set; else "". For example, template data-db of web has the same claim names as template data of
// db-web. Foreign claims without the label only withhold their ordinal.
func claimOfOtherSet(w *facts.World) string {
	for _, name := range slices.Sorted(maps.Keys(w.ForeignClaims)) {
		if w.ForeignClaims[name].Labels[v1alpha1.LabelSet] != "" {
			return children.AskOwner(w.Set.Namespace, w.Set.Name, w.ForeignClaims[name])
		}
	}
	return ""
}
