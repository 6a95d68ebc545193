package replicatedstatefulset

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

func TestASetIsCountedInThePhaseThatItIsIn(t *testing.T) {
	one, other := types.NamespacedName{Namespace: "counted", Name: "one"}, types.NamespacedName{Namespace: "counted", Name: "other"}
	in := func(key types.NamespacedName, phase v1alpha1.Phase) {
		gauge(key, &v1alpha1.ReplicatedStatefulSetStatus{Phase: phase})
	}
	in(other, v1alpha1.PhaseRunning)
	for _, phase := range phases {
		in(one, phase)
		if got, want := counted(t), []string{"one " + string(phase), "other Running"}; !slices.Equal(got, want) {
			t.Errorf("counted %q, want %q", got, want)
		}
	}
	forgetMetrics(one)
	forgetMetrics(other)
	if got := counted(t); len(got) > 0 {
		t.Errorf("counted after they went: %q", got)
	}
}

// counted are the sets of the test with their phases.
func counted(t *testing.T) (sets []string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(clustersGauge)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["namespace"] == "counted" {
				sets = append(sets, fmt.Sprintf("%s %s", labels["name"], labels["phase"]))
			}
		}
	}
	slices.Sort(sets)
	return sets
}

// What a proven stop of the primary says holds for the last primary only.
func TestMemoryKnowsWhoseGrantWentLast(t *testing.T) {
	r := &Reconciler{}
	seen := func(holders ...types.UID) types.UID {
		set := setOf(3, 2)
		set.UID = "set"
		for _, uid := range holders {
			set.Status.Grants = append(set.Status.Grants, v1alpha1.Grant{UID: uid})
		}
		w := &world{set: set}
		r.recall(w)
		return w.lossOf
	}
	for _, row := range []struct {
		says    string
		holders []types.UID
		want    types.UID
	}{
		{"none has gone yet", []types.UID{"a", "b", "c"}, ""},
		{"one went", []types.UID{"b", "c"}, "a"},
		{"and stays the last", []types.UID{"b", "c"}, "a"},
		{"of two at once it is not known", nil, ""},
		{"nor later", []types.UID{"a"}, ""},
		{"until the next", nil, "a"},
	} {
		if got := seen(row.holders...); got != row.want {
			t.Errorf("%s: %q, want %q", row.says, got, row.want)
		}
	}
}
