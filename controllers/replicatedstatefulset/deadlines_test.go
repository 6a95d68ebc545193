package replicatedstatefulset

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
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
	w.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: ago(15 * time.Second), To: ago(5 * time.Second)}}}
	return w
}

// replaced makes a world in which this process began to lead a moment ago.
func replaced(w *facts.World) *facts.World {
	w.Watch = leadership.Watch{Since: ago(10 * time.Second)}
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
	successor := func() *podFixture { return pod(1).secondary().sequence("9") }
	acts := func(part string) func(*facts.World) bool {
		return func(w *facts.World) bool {
			p := rules.Decide(w)
			return slices.ContainsFunc(gist(&p), func(line string) bool { return strings.Contains(line, part) })
		}
	}
	return []timed{
		{name: "a missing Node", limit: spec.FenceAfter, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).granted().onNode(nodestate.Facts{Missing: true, MissingSince: ago(age)}), successor())
		}, blames: acts("Fenced")},
		{name: "waiting for members that were lost with the primary", limit: spec.ReturnsWithin, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9").statusSince(0, time.Second), lost(age))
		}, blames: acts("1: Promote")},
		{name: "a missing copy in a scale-down", limit: spec.ReturnsWithin, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(3, 1), replicas(2), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).crashed(), lost(age))
		}, blames: func(w *facts.World) bool { p := rules.Decide(w); return p.Risk != "" }},
		{name: "a stop that ended with 0 without effect", limit: spec.SettleWithin, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).primary().sequence("9"), pod(1).granted().ends("stop", podexec.Succeeded, 0).age(age+time.Second).statusSince(8, time.Second))
		}, blames: acts("learned: stop of 1 failed")},
		{name: "a start that ended with 0 without effect", limit: spec.SettleWithin, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).granted().ends("promote", podexec.Succeeded, 0).age(age+time.Second).statusSince(7, time.Second), successor())
		}, blames: acts("delete pod 0: Unseen")},
		{name: "a status query that the API server refuses", limit: spec.RefusedFor, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).granted().began("promote", age+25*time.Second).silent(spec.UnresponsiveAfter).refused("status"), successor())
		}, blames: acts("delete pod 0: Unseen")},
		{name: "a status query without a response", limit: spec.AnswersWithin, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).primary().hangs(age), successor())
		}, blames: func(w *facts.World) bool {
			return slices.ContainsFunc(facts.Derive(w).Members, func(m *facts.Member) bool { return m.NotAnswering })
		}},
		{name: "the orderly stop of a deleted object", limit: spec.Patience, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), deletedSince(age), pod(0).primary().sequence("9"), successor())
		}, blames: acts("Scale, from 2 to 0")},
		{name: "the last wait for pods of a deleted object", limit: 2 * spec.Patience, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), deletedSince(age), replicas(2), pod(0).granted().onNode(off).deleted(), with(func(w *facts.World) { *w.Stateful.Spec.Replicas = 0 }))
		}, blames: acts("Release")},
		{name: "the timeout of a command with unknown outcome", limit: 20 * time.Second, byClock: true, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).granted().began("promote", age).statusSince(7, 100*time.Millisecond), successor())
		}, blames: acts("delete pod 0: Unseen")},
		{name: "a primary whose pod is not Ready", limit: spec.UnreadyAfter, byClock: true, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).primary().unready(age), successor())
		}, blames: func(w *facts.World) bool {
			f := facts.Derive(w)
			return len(f.Among(func(m *facts.Member) bool { return status.UnreadyTooLong(&f.Clock, m) })) > 0
		}},
		{name: "the minimum age of a recreated pod", limit: spec.MinPodAge, byClock: true, world: func(age time.Duration) *facts.World {
			return worldOf(setOf(2, 1), pod(0).primary(), pod(1).born(age).status(1).failures(2, "secondary", 1, true))
		}, blames: acts("delete pod 1: Failed")},
	}
}

// deletedSince makes the object terminating for that long.
func deletedSince(age time.Duration) thing {
	return with(func(w *facts.World) {
		at := metav1.NewTime(ago(age))
		w.Set.DeletionTimestamp = &at
	})
}
