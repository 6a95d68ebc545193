package status_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

func TestASetIsCountedInThePhaseThatItIsIn(t *testing.T) {
	one, other := types.NamespacedName{Namespace: "counted", Name: "one"}, types.NamespacedName{Namespace: "counted", Name: "other"}
	in := func(key types.NamespacedName, phase v1alpha1.Phase) {
		status.SetGauges(key, &v1alpha1.ReplicatedStatefulSetStatus{Phase: phase})
	}
	in(other, v1alpha1.PhaseRunning)
	for _, phase := range status.Phases {
		in(one, phase)
		if got, want := seriesOf(t, status.ClustersGauge, "counted", "name", "phase"), []string{"one " + string(phase) + " 1", "other Running 1"}; !slices.Equal(got, want) {
			t.Errorf("the series are %q, want %q", got, want)
		}
	}
	status.ForgetMetrics(one)
	status.ForgetMetrics(other)
	if got := seriesOf(t, status.ClustersGauge, "counted", "name", "phase"); len(got) > 0 {
		t.Errorf("the series after the deletion are %q", got)
	}
}

// seriesOf returns the series of a gauge collector in a namespace: the label values, then the
// value.
func seriesOf(t *testing.T, gauges prometheus.Collector, namespace string, labels ...string) (series []string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(gauges)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values := map[string]string{}
			for _, l := range m.GetLabel() {
				values[l.GetName()] = l.GetValue()
			}
			if values["namespace"] != namespace {
				continue
			}
			text := ""
			for _, label := range labels {
				text += values[label] + " "
			}
			series = append(series, fmt.Sprint(text, m.GetGauge().GetValue()))
		}
	}
	slices.Sort(series)
	return series
}

func TestRS132SequencesOfMembersAreMetrics(t *testing.T) {
	key := types.NamespacedName{Namespace: "versions", Name: "db"}
	show := func(sequences ...v1alpha1.Sequence) []string {
		status.SetGauges(key, &v1alpha1.ReplicatedStatefulSetStatus{Sequences: sequences})
		return seriesOf(t, status.SequenceGauge, "versions", "member")
	}
	first, second := v1alpha1.Sequence{Pod: "rss-db-0", Sequence: "18446744073709551615"}, v1alpha1.Sequence{Pod: "rss-db-1", Sequence: "7"}
	if got, want := show(first, second), []string{"rss-db-0 1.8446744073709552e+19", "rss-db-1 7"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := show(second, v1alpha1.Sequence{Pod: "rss-db-2", Sequence: "no number"}), []string{"rss-db-1 7"}; !slices.Equal(got, want) {
		t.Errorf("the series after a member lost its sequence are %q, want %q", got, want)
	}
	status.ForgetMetrics(key)
	if got := seriesOf(t, status.SequenceGauge, "versions", "member"); len(got) > 0 {
		t.Errorf("the series after the deletion of the set are %q", got)
	}
}
