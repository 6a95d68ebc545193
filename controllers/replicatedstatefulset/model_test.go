package replicatedstatefulset_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/test/modelcheck"
)

// search returns the model for a search. The label of a move has its index and its member.
func (m *setModel) search() modelcheck.Model[modelState] {
	const members = len(modelState{}.members)
	moves := m.moves()
	return modelcheck.Model[modelState]{
		Next: func(from modelState, reach func(int32, modelState)) {
			for k := range moves {
				for i := range members {
					to := from
					v := modelView{m: m, s: &to, at: i}
					if !moves[k].can(v) {
						continue
					}
					moves[k].do(v)
					to.normalize(m)
					reach(int32(k*members+i), to)
				}
			}
		},
		Say: func(label int32) string {
			return moves[int(label)/members].say(int(label) % members)
		},
		Broken: func(s modelState) bool { return s.broken() },
	}
}

// setWorlds are models with different faults.
var setWorlds = []setModel{
	{name: "containers crash, and streams break", faults: faultCrashes | faultStreams | faultSteps},
	{name: "leaders are frozen and succeeded", faults: faultDeposed | faultStreams | faultSteps},
	{name: "leaders are frozen, and containers crash", faults: faultDeposed | faultCrashes | faultStreams},
	{name: "exec returns early", faults: faultEarly | faultCrashes | faultStreams},
	{name: "a lease", faults: faultLeases | faultOneLease | faultSteps},
	{name: "a lease, and streams break", faults: faultLeases | faultOneLease | faultStreams},
	{name: "a lease, and containers crash", faults: faultLeases | faultOneLease | faultCrashes},
	{name: "a lease, and leaders are frozen", faults: faultLeases | faultOneLease | faultDeposed},
	{name: "all faults", faults: faultCrashes | faultDeposed | faultStreams | faultEarly | faultSteps},
}

// largeSetWorlds are searched by `make mutants`.
var largeSetWorlds = []setModel{
	{name: "leases", faults: faultLeases},
	{name: "a lease, and leaders are frozen, and containers crash", faults: faultLeases | faultOneLease | faultDeposed | faultCrashes},
}

func TestSetModelHolds(t *testing.T) {
	for _, m := range modelcheck.Worlds(setWorlds, largeSetWorlds) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			x := modelcheck.Holds(t, m.search())
			if !x.Reaches(func(s modelState) bool { return s.members[1].role == modelPrimary }) {
				t.Error("no member becomes primary")
			}
			strays := func(s modelState) bool { return s.members[0].start && s.members[0].started == modelOld }
			if m.has(faultCrashes) && !x.Reaches(strays) {
				t.Error("no start reaches the next container")
			}
			succeeds := func(s modelState) bool {
				return s.members[0].reported != modelRunning && s.members[1].role == modelPrimary
			}
			if m.has(faultLeases) && !x.Reaches(succeeds) {
				t.Error("no member succeeds one whose Lease has expired")
			}
		})
	}
}

// setRows are models without a rule. Then two members are primary at the same time, unless the row explains why not.
var setRows = []struct {
	setModel
	because string
}{
	{setModel: setModel{"a start is sent although there is a grant", 0, ruleOneGrant}},
	{setModel: setModel{"the record is written after the start was sent", faultDeposed, ruleRecordFirst}},
	{setModel: setModel{"the record is not bound to the resourceVersion", faultDeposed, ruleBound}},
	{setModel: setModel{"a start that returned 0 is over at once", faultEarly, ruleZeroIsConfirmed}},
	{setModel: setModel{"a start without a known end is over when status reports anything", faultStreams, ruleUnknownStays}},
	{setModel: setModel{"a grant does not stay while its start is on record", faultStreams, ruleStartKeepsGrant}},
	{setModel: setModel{"a container has ended when it is silent", 0, ruleKubeletProves}},
	{setModel: setModel{"a start ends with its container", faultCrashes | faultStreams, ruleStrays}},
	{setModel: setModel{"a start that may have reached the next container ends with the former one", faultCrashes | faultStreams, ruleStraysNext}},
	{setModel: setModel{"the grant of an ended container ends at once", faultCrashes, ruleGrantWaits}},
	{setModel: setModel{"a result of status from before the end of a start counts", faultSteps, ruleAnswersAfter}},
	{setModel: setModel{"a process that was frozen sends its start late", faultDeposed | faultCrashes, ruleInTime}},
	{setModel: setModel{"a kubelet reports a container later than spec.StrayAfter", faultCrashes, rulePrompt}},
	{setModel: setModel{"a start begins although no agent renews the Lease", faultLeases | faultOneLease, ruleArmed}},
	{setModel: setModel{"a start begins although the agent renews the Lease of another epoch", faultLeases | faultOneLease | faultDeposed, ruleArmedEpoch}},
	{setModel: setModel{"a Lease is written for a start although it has changed", faultLeases | faultOneLease | faultDeposed, ruleAssignmentBound}},
	{setModel: setModel{"a Lease is taken over although it has changed", faultLeases | faultOneLease, ruleTakeoverBound}},
	{setModel: setModel{"a Lease is released although it has changed", faultLeases | faultOneLease | faultDeposed, ruleReleaseBound}},
	{setModel: setModel{"a Lease is released although there is a grant", faultLeases | faultOneLease, ruleReleaseAfterGrant}},
	{setModel: setModel{"a pass reads the object before the Leases", faultLeases | faultOneLease | faultDeposed, ruleLeaseFirst}},
}

func TestSetModelNeedsItsRules(t *testing.T) {
	for _, row := range setRows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			modelcheck.Breaks(t, row.search(), row.because)
		})
	}
}
