package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// cached makes the world one that was read from the cache.
var cached = fixture.With(func(w *facts.World) { w.Live = false })

func TestGrowingIsLookedForLive(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  bool
	}{
		{"no live read if no expansion was refused", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), cached), false},
		{"no live read before the retry of a refused expansion", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), cached, fixture.Refused(facts.ReasonExpand, "no", time.Minute)), false},
		{"live read for the retry of a refused expansion", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), cached, fixture.Refused(facts.ReasonExpand, "no", 0)), true},
	} {
		if got := fixture.PlanOf(r.world).Look; got != r.want {
			t.Errorf("%s: p.look is %t", r.name, got)
		}
	}
}

func TestWhatMayBeDecidedOnTheCache(t *testing.T) {
	noBudget := fixture.With(func(w *facts.World) { w.Budget = nil })
	neverReady := fixture.With(func(w *facts.World) { w.Revisions[0].Annotations = nil })
	for name, c := range map[string]struct {
		world *facts.World
		live  bool
	}{
		"no steps are decided from the cache":                                               {fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()), false},
		"the disruption budget is decided from the cache":                                   {fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), noBudget), false},
		"the mark of a ready revision is decided from the cache":                            {fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), neverReady), false},
		"the disruption budget and the mark of a ready revision are decided from the cache": {fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), noBudget, neverReady), false},
		"a missing member requires a live read":                                             {fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B()), true},
		"a missing member and budget require a live read":                                   {fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), noBudget), true},
		"a returning member that the cache shows as alive requires a live read":             {fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.Starting("b"), fixture.OldC(), fixture.OldCommand(), cached, fixture.Updating("a", "uid-of-a", "now")), true},
		"a surplus member requires a live read":                                             {fixture.Seen(fixture.Set("db").Replicas(2), fixture.A(), fixture.B(), fixture.C(), neverReady), true},
	} {
		if p := fixture.PlanOf(c.world); p.WantsLive() != c.live {
			t.Errorf("%s: wantsLive is %v, want %v; steps are\n  %s", name, p.WantsLive(), c.live, strings.Join(p.Steps.Strings(), "\n  "))
		}
	}
}
