package replicatedstatefulset

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// readyFor makes the pod Ready for that long.
func (f *podFixture) readyFor(age time.Duration) *podFixture {
	f.Pod.Status.Conditions[0].LastTransitionTime = metaTime(age)
	return f
}

// settling returns a set of three with minReadySeconds 60. Its update has recreated member 2.
func settling(updated *podFixture, others ...thing) *facts.World {
	return worldOf(minReady(setOf(3, 1)), append([]thing{pod(0).primary().outdated(), pod(1).secondary().outdated(), updated}, others...)...)
}

func TestAvailableReplicas(t *testing.T) {
	for _, row := range []struct {
		name      string
		updated   *podFixture
		available int32
		wait      time.Duration // 0: not checked
	}{
		{"Ready for longer than minReadySeconds", pod(2).secondary(), 3, 0},
		{"Ready for minReadySeconds", pod(2).secondary().readyFor(time.Minute), 3, 0},
		{"Ready for less", pod(2).secondary().readyFor(55 * time.Second), 2, 5 * time.Second},
		{"in its role for less", pod(2).secondary().changed("secondary", 30*time.Second).statusSince(0, time.Second), 2, 30 * time.Second},
		{"its container has run for less", pod(2).restarted(30 * time.Second).secondary(), 2, 30 * time.Second},
		{"not Ready", pod(2).secondary().unready(2 * time.Minute), 2, 0},
		{"not started", pod(2).idle(), 2, 0},
	} {
		p := rules.Decide(settling(row.updated))
		if s := status.Summarize(&p); s.AvailableReplicas != row.available {
			t.Errorf("%s: %d members are available, want %d", row.name, s.AvailableReplicas, row.available)
		}
		if row.wait > 0 && (p.Wait <= 0 || p.Wait > row.wait) {
			t.Errorf("%s: requeued after %s, want at most %s", row.name, p.Wait, row.wait)
		}
	}
	p := rules.Decide(worldOf(setOf(1, 1), pod(0).primary().readyFor(-time.Second)))
	if s := status.Summarize(&p); s.AvailableReplicas != 1 {
		t.Error("a clock that differs by a second delays availability although minReadySeconds is 0")
	}
}

func TestAnUpdateWaitsForMinReadySeconds(t *testing.T) {
	justElected := with(func(w *facts.World) { w.Watch = leadership.Watch{Since: ago(10 * time.Second)} })
	stop := []string{"1: Stop, with 0"}
	check(t, []row{
		{"RS-119 update the next member after minReadySeconds", settling(pod(2).secondary().readyFor(time.Minute)), stop},
		{"RS-119 wait while the updated member has been Ready for less", settling(pod(2).secondary().readyFor(59 * time.Second)), nil},
		{"RS-119 wait while the updated member has had its role for less", settling(pod(2).secondary().changed("secondary", 30*time.Second).statusSince(0, time.Second)), nil},
		{"RS-119 wait while the updated member is not Ready", settling(pod(2).secondary().unready(10 * time.Second)), nil},
		{"RS-119 wait again in a new process, which has not observed the member", settling(pod(2).secondary(), justElected), nil},
		{"a member with the old template delays nothing", worldOf(minReady(setOf(3, 1)), pod(0).primary().outdated(), pod(1).secondary().outdated().readyFor(time.Second), pod(2).secondary()), stop},
		{"without minReadySeconds an updated secondary that is not Ready delays nothing", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).secondary().unready(time.Second)), stop},
	})
}

func minReady(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.MinReadySeconds = 60
	return set
}

func TestTheWaitForMinReadySecondsIsReported(t *testing.T) {
	for _, row := range []struct {
		name    string
		updated *podFixture
		want    string
	}{
		{"Ready for less", pod(2).secondary().readyFor(55 * time.Second), "rss-db-2 (until 12:00:05)"},
		{"not Ready", pod(2).secondary().unready(2 * time.Minute), "rss-db-2 (its pod is not Ready)"},
	} {
		p := rules.Decide(settling(row.updated))
		want := "the update waits until updated members have been Ready for spec.minReadySeconds (1m0s): " + row.want
		if p.Waiting.Reason != v1alpha1.ReasonWaitingForAvailability || p.Waiting.Message != want {
			t.Errorf("%s: got %+v, want message %q", row.name, p.Waiting, want)
		}
	}
}
