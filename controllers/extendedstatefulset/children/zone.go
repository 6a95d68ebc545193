package children

import (
	"fmt"
	"strconv"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// Zone is one of spec.zones with its index. A set without zones has a single zone without a name.
type Zone struct {
	Name  string // "" without zones
	Index int32  // NoZone without zones
}

// NoZone is the zone index of a set without zones.
const NoZone = -1

// Stem returns the name of the zone's StatefulSets without the version.
func (z Zone) Stem(set string) string {
	if z.Index == NoZone {
		return set
	}
	return fmt.Sprintf("%s-z%d", set, z.Index)
}

// In returns " in zone a" for messages; "" without zones.
func (z Zone) In() string {
	if z.Index == NoZone {
		return ""
	}
	return " in zone " + z.Name
}

// InZone returns the same as Zone.In for the name of a zone; "" means no zones.
func InZone(name string) string {
	if name == "" {
		return ""
	}
	return Zone{Name: name}.In()
}

// Place is an ordinal of a zone. It has the same claims in all versions.
type Place struct {
	Zone    Zone
	Ordinal int32
}

// ChildName returns the name of the StatefulSet of a version in a zone.
func ChildName(set string, z Zone, version int64) string {
	return fmt.Sprintf("%s-v%d", z.Stem(set), version)
}

// ParseChild returns the zone index and the version in the name of a StatefulSet.
func ParseChild(set, name string) (index int32, number int64, ok bool) {
	rest, ok := strings.CutPrefix(name, set+"-")
	if !ok {
		return 0, 0, false
	}
	index = NoZone
	if zoned, version, cut := strings.Cut(rest, "-v"); cut {
		n, err := strconv.ParseInt(strings.TrimPrefix(zoned, "z"), 10, 32)
		if err != nil {
			return 0, 0, false
		}
		index, rest = int32(n), "v"+version
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(rest, "v"), 10, 64)
	return index, number, err == nil && number > 0 && ChildName(set, Zone{Index: index}, number) == name
}

// ClaimName returns the name of a claim. The webhook puts the same name into pods.
func ClaimName(set, template string, z Zone, ordinal int32) string {
	return claimName(template, z.Stem(set), int(ordinal))
}

// claimName returns the name of a claim as a StatefulSet named stem would name it:
// <template>-<stem>-<ordinal>. claim.Name joins its arguments, and the other kinds pass the set first.
func claimName(template, stem string, ordinal int) string {
	return claim.Name(template, stem, strconv.Itoa(ordinal))
}

// ClaimStem returns the name of a claim without the ordinal. stem is Zone.Stem.
func ClaimStem(template, stem string) string { return template + "-" + stem }

// ZonesOf returns the wanted zones. A zone without an index gets the next free index. An index is never
// reused for another zone, because claims are named after it.
func ZonesOf(set *v1alpha1.ExtendedStatefulSet, s *v1alpha1.ExtendedStatefulSetStatus) []Zone {
	names := set.Spec.Zones[:min(len(set.Spec.Zones), spec.MaxZones)] // a set with more zones is invalid and gets no changes
	if len(names) == 0 {
		return []Zone{{Index: NoZone}}
	}
	next, indexes := int32(0), map[string]int32{}
	for _, z := range s.Zones {
		indexes[z.Name], next = z.Index, max(next, z.Index+1)
	}
	zones := make([]Zone, 0, len(names))
	for _, name := range names {
		index, ok := indexes[name]
		if !ok {
			index, indexes[name] = next, next
			next++
		}
		zones = append(zones, Zone{name, index})
	}
	return zones
}
