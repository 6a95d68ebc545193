package fencing

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/test/modelcheck"
)

// search returns the model for a search. The label of a move has its index, and which member or operator moves.
func (m *model) search() modelcheck.Model[state] {
	const most = max(members, operators)
	return modelcheck.Model[state]{
		Next: func(from state, reach func(int32, state)) {
			for k, mv := range moves {
				for by := range mv.count {
					to := from
					if mv.can(m, &to, by) {
						mv.do(m, &to, by)
						to.normalize(m)
						reach(int32(k*most+by), to)
					}
				}
			}
		},
		Say:    func(label int32) string { return moves[label/most].say(int(label) % most) },
		Broken: func(s state) bool { return s.broken() },
	}
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
			x := modelcheck.Holds(t, m.search())
			reached := func(what string, is func(s state) bool) {
				t.Helper()
				if !x.Reaches(is) {
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
			modelcheck.Breaks(t, row.search(), row.because)
		})
	}
}

// TestAFrozenProgramHasALowerEpoch checks that storage that compares epochs can refuse a program that was frozen.
func TestAFrozenProgramHasALowerEpoch(t *testing.T) {
	m := model{faults: cuts | freezes}
	x, at := modelcheck.Explore(m.search())
	if at < 0 {
		t.Fatal("a frozen program never continues")
	}
	if found := x.States[at].agents; found[0].epoch == found[1].epoch {
		t.Errorf("both programs have epoch %d:\n%s", found[0].epoch, x.Story(at))
	}
}
