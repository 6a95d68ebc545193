package spec_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestOrdinals(t *testing.T) {
	set := fixture.Read(t, "seed.yaml")
	for pod, want := range map[string]int{"rss-example-0": 0, "rss-example-10": 10, "rss-example-01": -1, "rss-example--1": -1,
		"rss-example-": -1, "rss-example": -1, "rss-example-1-1": -1, "example-1": -1, "rss-other-1": -1, "rss-example-99999999999999999999": -1} {
		got, ok := spec.OrdinalOf(set, pod)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%s: %d, want %d", pod, got, want)
		}
	}
}
