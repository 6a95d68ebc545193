package record_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// TestMaintenanceOnRecord tests that a parked member stays parked after a restart of the operator.
func TestMaintenanceOnRecord(t *testing.T) {
	w := fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), fixture.ParkedNow(2), fixture.With(func(w *facts.World) {
		w.Set.Spec.Maintenance = append(w.Set.Spec.Maintenance, "rss-other-1", "rss-db-01", "rss-db-2")
	}))
	p := rules.Decide(w)
	s := status.Summarize(&p)
	if len(s.Maintenance) != 1 || !s.Maintenance[0].Since.Time.Equal(fixture.Ago(time.Minute)) {
		t.Errorf("status.maintenance is %+v", s.Maintenance)
	}
	if s.ReadyReplicas != 2 || slices.Contains(s.Members.Failed, "rss-db-2") {
		t.Errorf("%d members are ready, and the failed ones are %v", s.ReadyReplicas, s.Members.Failed)
	}
}
