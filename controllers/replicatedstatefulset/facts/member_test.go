package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestStatesOfAContainer(t *testing.T) {
	for _, r := range []struct {
		name                          string
		pod                           *fixture.PodFixture
		running                       string
		down, reachable, stopped, out bool
	}{
		{"a container runs", fixture.Pod(0), "c0", false, true, false, false},
		{"a container has ended", fixture.Pod(0).Crashed(), "", true, false, false, true},
		{"a container runs again", fixture.Pod(0).Restarted(time.Minute), "c0+", false, true, false, false},
		{"the whole pod has stopped", fixture.Pod(0).Ended(), "", true, false, true, true},
		{"the kubelet has not reported the container", fixture.Pod(0).Pending(), "", true, false, false, false},
		{"the Node is unreachable", fixture.Pod(0).OnNode(fixture.Off), "c0", false, false, false, false},
		{"the pod belongs to another owner", fixture.Pod(0).Strange(), "c0", false, false, false, false},
	} {
		m := r.pod.Member
		if m.Running() != r.running || m.Down() != r.down || m.Reachable() != r.reachable {
			t.Errorf("%s: %q runs; down %t, reachable %t", r.name, m.Running(), m.Down(), m.Reachable())
		}
		if facts.Stopped(m) != r.stopped || m.EndedAfter(fixture.Noon) != r.out {
			t.Errorf("%s: stopped %t, ended %t", r.name, facts.Stopped(m), m.EndedAfter(fixture.Noon))
		}
	}
	if !facts.Stopped(nil) {
		t.Error("a pod that is gone has not stopped")
	}
}

// TestWhichAnswersCount checks that an answer counts until the next change of the member.
func TestWhichAnswersCount(t *testing.T) {
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want bool
	}{
		{"an answer", fixture.Pod(0).Secondary(), true},
		{"no answer", fixture.Pod(0), false},
		{"an answer of before the last change", fixture.Pod(0).Secondary().Changed("promote", time.Second), false},
		{"an answer of after the last change", fixture.Pod(0).Secondary().Changed("promote", time.Minute), true},
		{"an answer while the member is being changed", fixture.Pod(0).Secondary().WithRuns("promote", time.Second), false},
		{"an answer while it is asked again", fixture.Pod(0).Secondary().Hangs(time.Second), true},
		{"an answer of the previous container", fixture.Pod(0).Secondary().Restarted(time.Second), false},
		{"an answer that got lost", fixture.Pod(0).Answered("status", podexec.Unknown, 0, "", time.Second), false},
	} {
		if got := r.pod.Answers("status"); got != r.want {
			t.Errorf("%s: it counts: %t", r.name, got)
		}
	}
}

func TestCrashLoops(t *testing.T) {
	for times, want := range map[int32]bool{1: false, 9: true} {
		if got := fixture.Pod(0).Looping(time.Second).Crashes(times).CrashLoops(); got != want {
			t.Errorf("%d restarts: %t", times, got)
		}
	}
}

// TestPodsThatAreHeld checks until when a preStop hook delays the end of a program.
func TestPodsThatAreHeld(t *testing.T) {
	c := facts.Clock{Now: fixture.Noon}
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want bool
	}{
		{"the hook sleeps", fixture.Pod(0).Held(9 * time.Second), true},
		{"the hook has ended", fixture.Pod(0).Held(10 * time.Second), false},
		{"a pod without a hook", fixture.Pod(0).Deleted(), false},
	} {
		if got := c.IsHeld(r.pod.Member); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
}

func TestUnansweredQueriesAreRetriedLater(t *testing.T) {
	c := facts.Clock{Now: fixture.Noon}
	if got := c.Due(fixture.Pod(0).Member, "status"); got != 0 {
		t.Errorf("the first query is due in %s", got)
	}
	if got, want := c.Due(fixture.Pod(0).WithSilent(1).Member, "status"), max(0, spec.Backoff(1)-4*time.Second); got != want {
		t.Errorf("after a query without an answer: %s, want %s", got, want)
	}
}
