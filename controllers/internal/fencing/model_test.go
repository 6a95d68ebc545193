package fencing

import (
	"slices"
	"strings"
	"testing"
)

// origin is the state from which a state was reached, and the move.
type origin struct {
	from     int32
	move, by int8
}

// search is the set of reached states, nearest first.
type search struct {
	states  []state
	origins []origin
}

// explore visits all reachable states, breadth first, and stops at a broken one. It returns the index of that
// state, or -1.
func (m *model) explore() (*search, int) {
	x := &search{states: []state{{}}, origins: []origin{{from: -1}}}
	known := map[state]bool{{}: true}
	for at := 0; at < len(x.states); at++ {
		if x.states[at].broken() {
			return x, at
		}
		for k, mv := range moves {
			for by := range mv.count {
				now := x.states[at]
				if !mv.can(m, &now, by) {
					continue
				}
				mv.do(m, &now, by)
				now.normalize(m)
				if known[now] {
					continue
				}
				known[now] = true
				x.states = append(x.states, now)
				x.origins = append(x.origins, origin{int32(at), int8(k), int8(by)})
			}
		}
	}
	return x, -1
}

// story returns one of the shortest ways to reach a state.
func (x *search) story(at int) string {
	var lines []string
	for ; at > 0; at = int(x.origins[at].from) {
		o := x.origins[at]
		lines = append(lines, moves[o.move].say(int(o.by)))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// worlds are models with different faults. A world with all faults would be too large.
var worlds = []model{
	{name: "members are cut off, responses are lost", faults: cuts | losses},
	{name: "members are cut off, containers restart", faults: cuts | crashes},
	{name: "programs end, and the holder hands over", faults: ends | successors | losses},
	{name: "members are cut off, and the holder hands over", faults: cuts | ends | successors},
}

func TestModelHolds(t *testing.T) {
	for _, m := range worlds {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			x, at := m.explore()
			if at >= 0 {
				t.Fatalf("two programs run at the same time:\n%s", x.story(at))
			}
			t.Logf("%d states", len(x.states))
			reached := func(what string, is func(s state) bool) {
				t.Helper()
				if !slices.ContainsFunc(x.states, is) {
					t.Error("in no state " + what)
				}
			}
			if m.has(cuts) {
				reached("a program runs after the member with the other one was cut off", func(s state) bool { return s.agents[0].cut && s.runs(1) && s.lease.epoch > 0 })
			}
			if m.has(successors) {
				reached("a successor runs that no operator has assigned", func(s state) bool { return s.agents[0].program == ended && s.runs(1) && s.agents[1].epoch > 0 })
			}
		})
	}
}

// rows are models without a rule, or with a fault that the protocol does not cover. Then two programs run at the
// same time, unless the row explains why not. -v prints one of the shortest ways.
var rows = []struct {
	model
	because string
}{
	{model: model{"an agent does not end its program", cuts, endsItself}},
	{model: model{"S is D", cuts, endsBefore}},
	{model: model{"the age of a renewal is measured from its response", cuts, agesFromSend}},
	{model: model{"a restarted agent starts its program when the Lease names it", cuts | crashes, renewsFirst}},
	{model: model{"a renewal that was answered after S starts the program", cuts | crashes, startsWithFresh}},
	{model: model{"a renewal is not bound to the resourceVersion", cuts, renewalBound}},
	{model: model{"a handover is not bound to the resourceVersion", cuts | ends | successors, handoverBound},
		because: "only one other member can be named, and the program that has ended does not start again; with a third member the rule is needed"},
	{model: model{"a takeover is not bound to the resourceVersion", cuts, takeoverBound}},
	{model: model{"the choice of a holder is not bound to the resourceVersion", 0, assignmentBound}},
	{model: model{"an agent hands over before its program has ended", successors, handsOverAfter}},
	{model: model{"a takeover does not wait for D", cuts, watchesWholeTime}},

	{model: model{"an agent is not scheduled while its program runs", cuts | starves, 0}},
	{model: model{"a clock is slower by more than (D-S)/D", cuts | slowClocks, 0}},
	{model: model{"a container was frozen, and its program runs until its agent is scheduled", cuts | freezes, 0}},
}

func TestModelNeedsItsRules(t *testing.T) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			x, at := row.explore()
			switch {
			case at < 0 && row.because == "":
				t.Fatalf("two programs never run at the same time in %d states", len(x.states))
			case at < 0:
				t.Logf("not needed, because %s; %d states", row.because, len(x.states))
			case row.because != "":
				t.Fatalf("two programs run at the same time:\n%s", x.story(at))
			default:
				t.Logf("two programs run at the same time:\n%s", x.story(at))
			}
		})
	}
}

// TestAFrozenProgramHasALowerEpoch checks that storage that compares epochs can refuse a program that was frozen.
func TestAFrozenProgramHasALowerEpoch(t *testing.T) {
	m := model{faults: cuts | freezes}
	x, at := m.explore()
	if at < 0 || x.states[at].agents[0].epoch == x.states[at].agents[1].epoch {
		t.Fatalf("the state %d is %+v", at, x.states[at])
	}
}
