package facts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// TestV5DeadlinesCountTimeInWhichAnOperatorLooked tests that no member counts as failed or is given
// up for time in which this process could not observe the cluster: it was frozen, the API server
// was unavailable, or another process led and died. The table is that of docs/deadlines.md.
func TestV5DeadlinesCountTimeInWhichAnOperatorLooked(t *testing.T) {
	for _, d := range deadlines() {
		before, after := d.limit-2*time.Second, d.limit+2*time.Second
		for _, r := range []struct {
			name  string
			world *facts.World
			want  bool
		}{
			{"before the deadline", d.world(before), false},
			{"after the deadline", d.world(after), true},
			{"after the deadline, frozen for ten seconds", frozen(d.world(after)), d.byClock},
			{"after the deadline plus the frozen time", frozen(d.world(after + 10*time.Second)), true},
			{"after the deadline, with a new operator", replaced(d.world(after)), d.byClock},
		} {
			if got := d.blames(r.world); got != r.want {
				t.Errorf("V5 %s, %s: the deadline has expired: %t, want %t", d.name, r.name, got, r.want)
			}
		}
	}
}

// frozen makes a world in which this process could recently not observe the cluster for ten
// seconds.
func frozen(w *facts.World) *facts.World {
	w.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Ago(15 * time.Second), To: fixture.Ago(5 * time.Second)}}}
	return w
}

// replaced makes a world in which this process began to lead a moment ago.
func replaced(w *facts.World) *facts.World {
	w.Watch = leadership.Watch{Since: fixture.Ago(10 * time.Second)}
	return w
}

// timed is a deadline.
type timed struct {
	name    string
	limit   time.Duration
	world   func(age time.Duration) *facts.World // a world in which the time began that long ago
	blames  func(*facts.World) bool
	byClock bool // uses the clock; the documentation gives the reason
}

func deadlines() []timed {
	successor := func() *fixture.PodFixture { return fixture.Pod(1).Secondary().Sequence("9") }
	acts := func(part string) func(*facts.World) bool {
		return func(w *facts.World) bool {
			p := rules.Decide(w)
			return slices.ContainsFunc(fixture.Gist(&p), func(line string) bool { return strings.Contains(line, part) })
		}
	}
	return []timed{
		{name: "a missing Node", limit: spec.FenceAfter, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().OnNode(nodestate.Facts{Missing: true, MissingSince: fixture.Ago(age)}), successor())
		}, blames: acts("Fenced")},
		{name: "waiting for members that were lost with the primary", limit: spec.ReturnsWithin, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9").StatusSince(0, time.Second), fixture.Lost(age))
		}, blames: acts("1: Promote")},
		{name: "a missing copy in a scale-down", limit: spec.ReturnsWithin, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(3, 1), fixture.Replicas(2), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Crashed(), fixture.Lost(age))
		}, blames: func(w *facts.World) bool { p := rules.Decide(w); return p.Risk != "" }},
		{name: "a stop that ended with 0 without effect", limit: spec.SettleWithin, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).WithGranted().Ends("stop", podexec.Succeeded, 0).Age(age+time.Second).StatusSince(8, time.Second))
		}, blames: acts("learned: stop of 1 failed")},
		{name: "a start that ended with 0 without effect", limit: spec.SettleWithin, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Ends("promote", podexec.Succeeded, 0).Age(age+time.Second).StatusSince(7, time.Second), successor())
		}, blames: acts("delete pod 0: Unseen")},
		{name: "a status query that the API server refuses", limit: spec.RefusedFor, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", age+25*time.Second).WithSilent(spec.UnresponsiveAfter).Refused("status"), successor())
		}, blames: acts("delete pod 0: Unseen")},
		{name: "a status query without a response", limit: spec.AnswersWithin, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Hangs(age), successor())
		}, blames: func(w *facts.World) bool {
			return slices.ContainsFunc(facts.Derive(w).Members, func(m *facts.Member) bool { return m.NotAnswering })
		}},
		{name: "the orderly stop of a deleted object", limit: spec.Patience, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.DeletedSince(age), fixture.Pod(0).Primary().Sequence("9"), successor())
		}, blames: acts("Scale, from 2 to 0")},
		{name: "the last wait for pods of a deleted object", limit: 2 * spec.Patience, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.DeletedSince(age), fixture.Replicas(2), fixture.Pod(0).WithGranted().OnNode(fixture.Off).Deleted(), fixture.With(func(w *facts.World) { *w.Stateful.Spec.Replicas = 0 }))
		}, blames: acts("Release")},
		{name: "the timeout of a command with unknown outcome", limit: 20 * time.Second, byClock: true, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", age).StatusSince(7, 100*time.Millisecond), successor())
		}, blames: acts("delete pod 0: Unseen")},
		{name: "a primary whose pod is not Ready", limit: spec.UnreadyAfter, byClock: true, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Unready(age), successor())
		}, blames: func(w *facts.World) bool {
			f := facts.Derive(w)
			return len(f.Among(func(m *facts.Member) bool { return status.UnreadyTooLong(&f.Clock, m) })) > 0
		}},
		{name: "the minimum age of a recreated pod", limit: spec.MinPodAge, byClock: true, world: func(age time.Duration) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Born(age).Status(1).Failures(2, "secondary", 1, true))
		}, blames: acts("delete pod 1: Failed")},
	}
}
