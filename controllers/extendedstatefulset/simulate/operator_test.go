package simulate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

func TestAPassWaitsForItsCache(t *testing.T) {
	s := simulate.Start(newCluster(fixture.Plain()), key)
	if first := s.Pass(); !first.Acted || first.Err != nil {
		t.Fatalf("the first pass: %+v", first)
	}
	written := s.Writes()
	if second := s.Pass(); second.Acted || second.Wait == 0 || s.Writes() != written {
		t.Errorf("a pass on the same cache: %+v, %d writes", second, s.Writes()-written)
	}
	s.Look()
	if third := s.Pass(); !third.Acted {
		t.Errorf("a pass on a new cache: %+v", third)
	}
}

func TestTheCacheNeverShowsARemovedObject(t *testing.T) {
	s := simulate.Start(newCluster(fixture.Plain()), key)
	for range 5 {
		s.Look()
		s.Pass()
		var set appsv1.StatefulSet
		if s.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "shop-v1"}, &set) == nil {
			s.Remove(&set)
			s.Look()
			if again := s.Pass(); !again.Acted {
				t.Errorf("the next pass: %+v", again)
			}
			return
		}
	}
	t.Error("no StatefulSet is created")
}

// TestAKilledOperator checks that a killed operator writes nothing more in the same pass, and that the next one
// finishes the work.
func TestAKilledOperator(t *testing.T) {
	for _, failure := range []simulation.Failure{simulation.DiesBefore, simulation.DiesAfter} {
		for nth := 1; ; nth++ {
			s := started(t, fixture.Plain())
			edit(t, s.Cluster, image("two"))
			last := s.Writes() + nth
			s.Interfere = failure.At(s.Cluster, last)
			if !isKilled(t, s, last) {
				break // the upgrade has fewer writes
			}
			if nth%5 == 0 {
				settle(t, s)
				hasReady(t, s.Cluster, "shop-v2-0", "shop-v2-1", "shop-v2-2")
			}
		}
	}
}

// isKilled runs the operator until it is killed in the given write, and reports whether it was.
func isKilled(t *testing.T, s *simulate.Simulation, last int) bool {
	t.Helper()
	before := s.Reader
	for range 60 {
		s.Look()
		passed := s.Pass()
		if s.Reader != before {
			if !passed.Acted || passed.Err != nil || s.Writes() != last {
				t.Errorf("the pass of write %d: %+v, %d writes", last, passed, s.Writes())
			}
			return true
		}
		for _, move := range s.Moves() {
			move()
		}
		s.Now = s.Now.Add(10 * time.Second)
	}
	if s.Writes() > last {
		t.Errorf("the operator was not killed in write %d of %d", last, s.Writes())
	}
	return false
}

func TestAFailedWrite(t *testing.T) {
	s := simulate.Start(newCluster(fixture.Volumes()), key)
	failed := errors.New("failed")
	s.Interfere = func(int, action.Action) (before, after error) { return failed, nil }
	if passed := s.Pass(); !passed.Acted || !errors.Is(passed.Err, failed) {
		t.Errorf("the pass: %+v", passed)
	}
	s.Interfere = nil
	settle(t, s)
	hasReady(t, s.Cluster, "shop-v1-0", "shop-v1-1", "shop-v1-2")
}

// TestTheStory checks that the story contains the record, but not the observed state.
func TestTheStory(t *testing.T) {
	records := 0
	for _, line := range started(t, fixture.Plain()).Story {
		switch {
		case !strings.HasPrefix(line, "  patch status"):
		case strings.Contains(line, "version"):
			records++
		default:
			t.Errorf("unexpected line %q", line)
		}
	}
	if records == 0 {
		t.Error("the story has no record")
	}
}
