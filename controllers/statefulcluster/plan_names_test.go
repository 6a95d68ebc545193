package statefulcluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// creating sets the names of new members in status.creating.
func creating(ids ...string) thing {
	return with(func(w *facts.World) { w.Set.Status.Creating = w.NamesOf(ids) })
}

func TestNamesAreRecordedFirst(t *testing.T) {
	names := "patch status of statefulcluster db: Names"
	first := func(lines ...string) []string { return append([]string{names}, lines...) }
	check(t, []row{
		{name: "V2 the name of a new member is recorded before its pod is created",
			world: seen(set("db"), offRecord, a(), b()), want: first(creates("f1")...)},
		{name: "V2 the names of several members are recorded in one write",
			world: seen(set("db"), offRecord), want: first(creates("f1", "f2", "f3")...)},
		{name: "V2 recorded names are used without another write",
			world: seen(set("db"), creating("f1", "f2", "f3")), want: creates("f1", "f2", "f3")},
		{name: "V2 additional names are recorded first if too few are recorded",
			world: seen(set("db"), creating("f1")), want: first(creates("f1", "f2", "f3")...)},
		{name: "V2 the name of a replacement is recorded before the lost pod is deleted",
			world: seen(set("db"), offRecord, a().nodeGone(), b(), c()), want: first(replaces("a", "f1", v1alpha1.LossNodeGone))},
		{name: "V2 OrderedReady records one name",
			world: seen(set("db").orderedReady(), offRecord), want: first(creates("f1")...)},
		{name: "V2 a refused write of names is retried later",
			world: seen(set("db"), offRecord, a(), b(), refused(facts.ReasonNames, "too large", time.Minute)), wait: time.Minute},
	})
}

// The names on record after a pass in which every write had that result.
func TestNamesLeaveTheRecord(t *testing.T) {
	exists := apierrors.NewAlreadyExists(corev1.Resource("pods"), "db-f1")
	quota := apierrors.NewForbidden(corev1.Resource("pods"), "db-f1", errors.New("quota"))
	two := func(things ...thing) *facts.World { return seen(set("db"), append(things, a(), b())...) }
	for _, r := range []struct {
		name  string
		world *facts.World
		err   error
		want  []string
	}{
		{"V2 a name is removed when its pod was created", two(creating("f1")), nil, nil},
		{"V2 SC-18 a name is kept while the create of its pod is refused", two(creating("f1")), quota, []string{"db-f1"}},
		{"V2 a name is removed if another pod has it", two(creating("f1")), exists, nil},
		{"V2 a name is not recorded if the write was refused", two(offRecord), quota, nil},
		{"V2 a name is removed when its pod is observed", two(creating("c"), c()), nil, nil},
		{"V2 SC-39 a name is removed when its pod was observed and deleted", two(creating("c"), c().going(), pod("d").on("n4").ready()), nil, nil},
		{"V2 SC-39 a name is removed when its claim exists without a pod",
			two(creating("c"), looseClaimOf("c"), pod("d").on("n4").ready()), nil, nil},
		{"V2 a name is removed after a scale-down", seen(set("db").replicas(2), creating("f1"), a(), b()), nil, nil},
		{"V2 a name is kept for an empty slot while creates are refused",
			two(creating("f1", "f2"), refused(facts.ReasonMissing, "quota", time.Minute)), nil, []string{"db-f1"}},
		{"V2 SC-18 the name of a replacement is kept while creates are refused",
			seen(set("db"), creating("f1"), a().nodeNotReadyFor(time.Hour), b(), c(), refused(facts.ReasonReplaced, "quota", time.Minute)), nil, []string{"db-f1"}},
		{"V2 names are kept while the spec is invalid",
			seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.Selector = nil }), creating("f1")), nil, []string{"db-f1"}},
	} {
		p := planOf(r.world)
		var outcomes []action.Outcome
		for _, step := range p.Steps {
			for _, chain := range step {
				o := action.Outcome{Action: chain[0], Err: r.err}
				if r.err == nil {
					o.Answer = chain[0].Object.DeepCopyObject().(client.Object)
				}
				outcomes = append(outcomes, o)
			}
			if r.err != nil {
				break
			}
		}
		if got := statusOf(r.world, &p, outcomes).Creating; !slices.Equal(got, r.want) {
			t.Errorf("%s: recorded names are %q, want %q", r.name, got, r.want)
		}
	}
}

// A new member never gets a name that a member has or had.
func TestNamesOnRecordThatAreTaken(t *testing.T) {
	w := seen(set("db"), creating("a", "l", "u", "x", "f1"), a(), looseClaimOf("l"), updating("u", "uid-of-u", "now"), with(func(w *facts.World) {
		w.Set.Status.Lost = []v1alpha1.LostMember{{Name: "db-x"}}
	}))
	if got := facts.UnusedIDs(w); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("V2 unused names are %q, want f1", got)
	}
}

// A leader is frozen right before one of its writes. Another takes over and settles the set. Then
// the first wakes and continues. This is the worst case: only the writes themselves prevent harm.
func TestV2AFrozenLeaderWakes(t *testing.T) {
	stories := append(slices.Clone(stories[:goldenStories]),
		story{"surge-of-all", func() *setFixture { return three().surge(3) }, []act{roll("two")}},
		story{"scale-by-many", three, []act{scaleTo(9)}})
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			alone := newStage(t, story.set())
			alone.play(story, func() { alone.settle(2 * time.Second) })
			for n := 1; n <= alone.Writes(); n++ {
				s := newStage(t, story.set())
				s.Interfere = func(write int, a action.Action) (before, after error) {
					if write == n {
						s.Interfere = nil
						s.Say("! the leader is frozen before: %s", a)
						s.anotherLeads(func() { s.settle(2 * time.Second) })
						s.Say("! the frozen leader continues")
					}
					return nil, nil
				}
				s.play(story, func() { s.settle(2 * time.Second) })
				s.settle(15 * time.Minute)
				s.ends()
				if made := len(s.invariants.names); made != len(alone.invariants.names) {
					s.Breaks("V2 %d names were used, want %d as without a freeze", made, len(alone.invariants.names))
				}
				s.Check(s.t)
			}
		})
	}
}

// anotherLeads runs do as another process and then switches back to this one. Ids are random, so
// the other process never generates those of this one.
func (s *stage) anotherLeads(do func()) {
	for _, id := range s.invariants.seen.Fresh {
		s.used[id] = true
	}
	r, shown, at, since, seen := s.r, s.shown, s.at, s.since, s.invariants.seen
	s.restart()
	do()
	s.r, s.shown, s.at, s.since, s.invariants.seen = r, shown, at, since, seen
}
