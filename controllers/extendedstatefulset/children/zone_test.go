package children_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

func TestParseChild(t *testing.T) {
	for _, row := range []struct {
		name    string
		index   int32
		version int64
		ok      bool
	}{
		{"db-v1", children.NoZone, 1, true}, {"db-v10", children.NoZone, 10, true}, {"db-z0-v2", 0, 2, true}, {"db-z12-v345", 12, 345, true},
		{"db", 0, 0, false}, {"db-v", 0, 0, false}, {"db-v0", 0, 0, false}, {"db-v01", 0, 0, false}, {"db-z-v1", 0, 0, false},
		{"db-z0-z1-v1", 0, 0, false}, {"dbx-v1", 0, 0, false}, {"db-va-v1", 0, 0, false}, {"db-z01-v1", 0, 0, false},
	} {
		if index, number, ok := children.ParseChild("db", row.name); ok != row.ok || ok && (index != row.index || number != row.version) {
			t.Errorf("%s: zone %d, version %d, %t", row.name, index, number, ok)
		}
	}
}

// TestKeepInZone verifies E29: the zone is added to every term, because terms are alternatives.
func TestKeepInZone(t *testing.T) {
	pod := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a"}}}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "b"}}}}}}}}
	bare := corev1.PodSpec{}
	for i, spec := range []*corev1.PodSpec{&pod, &bare} {
		children.KeepInZone(spec, "", "z")
		terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if len(terms) != 2-i {
			t.Fatalf("%d terms", len(terms))
		}
		for _, term := range terms {
			last := term.MatchExpressions[len(term.MatchExpressions)-1]
			if last.Key != corev1.LabelTopologyZone || last.Operator != corev1.NodeSelectorOpIn || !slices.Equal(last.Values, []string{"z"}) {
				t.Errorf("got a term without the zone: %v", term)
			}
		}
	}
}
