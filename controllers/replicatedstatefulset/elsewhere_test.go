package replicatedstatefulset

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

func seedsFail(s *stage) { s.db.Fails["rss-db-0 seed"], s.db.Fails["rss-db-2 seed"] = 100, 100 }

// until runs the simulation until the condition is true.
func until(is func(*stage) bool) func(*stage) {
	return func(s *stage) {
		for range 3000 {
			s.Look()
			s.pass()
			if is(s) {
				return
			}
			for _, m := range append(s.Machines(), s.db.Moves()...) {
				m()
			}
			s.Now = s.Now.Add(100 * time.Millisecond)
		}
		s.t.Fatal("the condition of the step was never true")
	}
}

func stopsWithProof(s *stage) bool {
	for _, c := range s.db.Running {
		if c.Name == v1alpha1.CommandStop && c.Proven {
			return true
		}
	}
	return false
}

func TestScenariosOfCopiesElsewhere(t *testing.T) {
	for _, scenario := range []struct {
		name     string
		replicas int32
		wait     time.Duration
		steps    []func(*stage)
	}{
		{"two primaries crash at once", 2, 90 * time.Second, []func(*stage){write, together(slow("rss-db-2"), write, crash(0), crash(1)), write}},
		{"the member to remove and the primary crash", 1, 90 * time.Second, []func(*stage){write, together(slow("rss-db-1"), write, scaleTo(2), crash(0), crash(2)), write}},
		{"the primary ends after the member to remove was stopped", 1, 90 * time.Second, []func(*stage){write, together(slow("rss-db-1"), write, scaleTo(2),
			until(func(s *stage) bool { return s.db.Containers["rss-db-2"].Role == record.Idle }),
			func(s *stage) { s.db.Containers["rss-db-0"].Role = record.Idle }), write}},
		{"the newest member fails to start and is unschedulable", 1, 20 * time.Second, []func(*stage){write, together(slow("rss-db-1"), write, seedsFail, crash(0), crash(2), tellCrashes),
			together(deleted(0), deleted(2), nowhere("n1"), nowhere("n3")), func(s *stage) { s.Now = s.Now.Add(2 * time.Minute) }, write}},
		{"the successor lags while the old primary is being stopped", 1, 90 * time.Second, []func(*stage){write, switchTo(2), write,
			together(scaleTo(2), until(stopsWithProof), slow("rss-db-0"), write, crash(1), tellCrashes), write}},
	} {
		t.Run(scenario.name, func(t *testing.T) { play(t, fixture.SetOf(3, scenario.replicas), scenario.wait, scenario.steps...) })
	}
}
