package facts_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// settling returns a set of three with minReadySeconds 60. Its update has recreated member 2.
func settling(updated *fixture.PodFixture, others ...fixture.Thing) *facts.World {
	return fixture.WorldOf(minReady(fixture.SetOf(3, 1)), append([]fixture.Thing{fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), updated}, others...)...)
}

func TestAvailableReplicas(t *testing.T) {
	for _, row := range []struct {
		name      string
		updated   *fixture.PodFixture
		available int32
		wait      time.Duration // 0: not checked
	}{
		{"Ready for longer than minReadySeconds", fixture.Pod(2).Secondary(), 3, 0},
		{"Ready for minReadySeconds", fixture.Pod(2).Secondary().ReadyFor(time.Minute), 3, 0},
		{"Ready for less", fixture.Pod(2).Secondary().ReadyFor(55 * time.Second), 2, 5 * time.Second},
		{"in its role for less", fixture.Pod(2).Secondary().Changed("secondary", 30*time.Second).StatusSince(0, time.Second), 2, 30 * time.Second},
		{"its container has run for less", fixture.Pod(2).Restarted(30 * time.Second).Secondary(), 2, 30 * time.Second},
		{"not Ready", fixture.Pod(2).Secondary().Unready(2 * time.Minute), 2, 0},
		{"not started", fixture.Pod(2).Idle(), 2, 0},
	} {
		p := rules.Decide(settling(row.updated))
		if s := status.Summarize(&p); s.AvailableReplicas != row.available {
			t.Errorf("%s: %d members are available, want %d", row.name, s.AvailableReplicas, row.available)
		}
		if row.wait > 0 && (p.Wait <= 0 || p.Wait > row.wait) {
			t.Errorf("%s: requeued after %s, want at most %s", row.name, p.Wait, row.wait)
		}
	}
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary().ReadyFor(-time.Second)))
	if s := status.Summarize(&p); s.AvailableReplicas != 1 {
		t.Error("a clock that differs by a second delays availability although minReadySeconds is 0")
	}
}

func TestAnUpdateWaitsForMinReadySeconds(t *testing.T) {
	justElected := fixture.With(func(w *facts.World) { w.Watch = leadership.Watch{Since: fixture.Ago(10 * time.Second)} })
	stop := []string{"1: Stop, with 0"}
	fixture.Check(t, []fixture.Row{
		{"RS-119 update the next member after minReadySeconds", settling(fixture.Pod(2).Secondary().ReadyFor(time.Minute)), stop},
		{"RS-119 wait while the updated member has been Ready for less", settling(fixture.Pod(2).Secondary().ReadyFor(59 * time.Second)), nil},
		{"RS-119 wait while the updated member has had its role for less", settling(fixture.Pod(2).Secondary().Changed("secondary", 30*time.Second).StatusSince(0, time.Second)), nil},
		{"RS-119 wait while the updated member is not Ready", settling(fixture.Pod(2).Secondary().Unready(10 * time.Second)), nil},
		{"RS-119 wait again in a new process, which has not observed the member", settling(fixture.Pod(2).Secondary(), justElected), nil},
		{"a member with the old template delays nothing", fixture.WorldOf(minReady(fixture.SetOf(3, 1)), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated().ReadyFor(time.Second), fixture.Pod(2).Secondary()), stop},
		{"without minReadySeconds an updated secondary that is not Ready delays nothing", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Secondary().Unready(time.Second)), stop},
	})
}

func minReady(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.MinReadySeconds = 60
	return set
}

func TestTheWaitForMinReadySecondsIsReported(t *testing.T) {
	for _, row := range []struct {
		name    string
		updated *fixture.PodFixture
		want    string
	}{
		{"Ready for less", fixture.Pod(2).Secondary().ReadyFor(55 * time.Second), "rss-db-2 (until 2026-03-01T12:00:05Z)"},
		{"not Ready", fixture.Pod(2).Secondary().Unready(2 * time.Minute), "rss-db-2 (its pod is not Ready)"},
	} {
		p := rules.Decide(settling(row.updated))
		want := "the update waits until updated members have been Ready for spec.minReadySeconds (1m0s): " + row.want
		if p.Waiting.Reason != v1alpha1.ReasonWaitingForAvailability || p.Waiting.Message != want {
			t.Errorf("%s: got %+v, want message %q", row.name, p.Waiting, want)
		}
	}
}
