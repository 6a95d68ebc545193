package facts_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// deadline is a row of the table of deadlines in docs/deadlines.md.
type deadline struct {
	name  string
	limit time.Duration
	// world returns a world in which the time began that long ago.
	world func(ago time.Duration) *facts.World
	// over reports whether the operator acts as if the time has expired.
	over func(*facts.World) bool
}

func acts(w *facts.World) bool { p := rules.Decide(facts.Derive(w)); return len(p.Steps) > 0 }

func deadlines() []deadline {
	began := func(ago time.Duration, policy v1.TimeoutPolicy) *facts.World {
		object := fixture.Singleton("db").Held("a", 1).With(func(s *v1.StatefulSingleton) {
			s.Status.TransitionTimestamp, s.Spec.OnTimeout = &metav1.Time{Time: fixture.Noon.Add(-ago)}, policy
		})
		return fixture.WorldOf(object, fixture.Granted("a", 1).Coming(), fixture.Waiting("b"))
	}
	return []deadline{
		{"maxTransitionTime, onTimeout Wait", 300 * time.Second, func(ago time.Duration) *facts.World { return began(ago, v1.TimeoutWaits) },
			func(w *facts.World) bool { return status.PhaseOf(facts.Derive(w)) == v1.PhaseFailed }},
		{"maxTransitionTime, onTimeout DeleteOld", 300 * time.Second, func(ago time.Duration) *facts.World { return began(ago, v1.TimeoutDeletesOld) }, acts},
		{"a missing Node", spec.FenceAfter, func(ago time.Duration) *facts.World {
			return fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).OnNode(fixture.GoneSince(ago)), fixture.Waiting("b"))
		}, acts},
		{"a missing Node of a terminating pod", spec.FenceAfter, func(ago time.Duration) *facts.World {
			return fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted().OnNode(fixture.GoneSince(ago)), fixture.Waiting("b"))
		}, acts},
		{"a new object", spec.SettleAfter, func(ago time.Duration) *facts.World {
			return fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), func(w *facts.World) { w.FirstSeen = fixture.Noon.Add(-ago) })
		}, acts},
		{"a static pod that is no longer reported", spec.MirrorReturns, func(ago time.Duration) *facts.World {
			return fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), func(w *facts.World) { w.MirrorGone = fixture.Noon.Add(-ago) })
		}, acts},
		{"a gate that must run before the old pod is deleted", spec.GateSteadyAfter, func(ago time.Duration) *facts.World {
			return fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d").Old(), fixture.Waiting("b").Of("d").HeldFor(ago))
		}, acts},
		{"a script that must run before the grant", spec.GateSteadyAfter, func(ago time.Duration) *facts.World {
			return fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Scripted().HeldFor(ago))
		}, acts},
		{"a pod of the newest revision that has not reached its gate", spec.NewestPatience, func(ago time.Duration) *facts.World {
			next := fixture.Waiting("c").Of("d").Stuck("ContainerCreating")
			next.Pod.CreationTimestamp.Time = fixture.Noon.Add(-ago)
			return fixture.WorldOf(fixture.Held(), next, fixture.Waiting("b").Of("d").Old())
		}, acts},
	}
}

// TestV5TimeInWhichTheOperatorWasAway checks that time during which this process was
// frozen, was not the leader or had no API server does not count.
func TestV5TimeInWhichTheOperatorWasAway(t *testing.T) {
	const away = time.Second
	for _, d := range deadlines() {
		frozen := leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(-away - time.Millisecond), To: fixture.Noon.Add(-time.Millisecond)}}}
		restarted := leadership.Watch{Since: fixture.Noon.Add(away - d.limit)}
		for _, r := range []struct {
			name  string
			ago   time.Duration
			watch leadership.Watch
			over  bool
		}{
			{"the deadline has passed", d.limit, leadership.Watch{}, true},
			{"1 ms before the deadline", d.limit - time.Millisecond, leadership.Watch{}, false},
			{"the operator was paused for 1 s", d.limit, frozen, false},
			{"the operator was paused for 1 s, and 1 s was added", d.limit + away, frozen, true},
			{"the operator was restarted 1 s after the begin", d.limit, restarted, false},
			{"the wait began long before a restart of the operator", 24 * time.Hour, restarted, false},
			{"the API server is unreachable", d.limit, leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(-away), To: fixture.Noon}}}, false},
		} {
			w := d.world(r.ago)
			w.Watch = r.watch
			if got := d.over(w); got != r.over {
				t.Errorf("V5 %s: %s: deadline exceeded is %t", d.name, r.name, got)
			}
			// No watch event reports the end of a time.
			w = d.world(r.ago)
			w.Watch = r.watch
			if p := rules.Decide(facts.Derive(w)); !r.over && (p.Wait <= 0 || p.Wait > away) {
				t.Errorf("V5 %s: %s: requeued after %s", d.name, r.name, p.Wait)
			}
		}
	}
}

func TestAGateThatComesToRestIsLookedAtAgain(t *testing.T) {
	p := rules.Decide(facts.Derive(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d").Old(), fixture.Waiting("b").Of("d").HeldFor(time.Second))))
	if want := spec.GateSteadyAfter - time.Second; p.Wait != want {
		t.Errorf("requeued after %s, want %s", p.Wait, want)
	}
	p = rules.Decide(facts.Derive(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d"), fixture.Waiting("b").Of("d").HeldFor(time.Minute))))
	if p.Wait != 0 {
		t.Errorf("at rest, requeued after %s", p.Wait)
	}
}
