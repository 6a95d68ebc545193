package statefulcluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// A leader is frozen right before one of its writes. Another takes over and settles the set. Then
// the first wakes and continues. This is the worst case: only the writes themselves prevent harm.
func TestV2AFrozenLeaderWakes(t *testing.T) {
	stories := append(slices.Clone(stories[:goldenStories]),
		story{"surge-of-all", func() *fixture.SetFixture { return three().Surge(3) }, []act{roll("two")}},
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
	s.Use(s.invariants.seen.Fresh...)
	process, seen := s.Process, s.invariants.seen
	s.Restart()
	do()
	s.Process, s.invariants.seen = process, seen
}
