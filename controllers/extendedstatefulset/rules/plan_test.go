package rules_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// TestWhatAPlanChanges checks that probes alone change nothing.
func TestWhatAPlanChanges(t *testing.T) {
	probe := action.Chain{{Verb: action.Exec}}
	write := action.Chain{{Verb: action.Patch}}
	for _, r := range []struct {
		name            string
		record          bool
		chains          []action.Chain
		does, asks, all bool
	}{
		{"nothing", false, nil, false, true, false},
		{"a probe", false, []action.Chain{probe}, true, true, false},
		{"a write", false, []action.Chain{write}, true, false, true},
		{"a probe and a write", false, []action.Chain{probe, write}, true, false, true},
		{"the record", true, nil, true, false, true},
	} {
		p := rules.Plan{RecordFirst: r.record}
		p.Do(r.chains...)
		if p.DoesSomething() != r.does || p.ProbesOnly() != r.asks || p.Changes() != r.all {
			t.Errorf("%s: does something %t, only asks %t, changes something %t", r.name, p.DoesSomething(), p.ProbesOnly(), p.Changes())
		}
	}
}

func TestTheReasonToWaitIsAdded(t *testing.T) {
	var p rules.Plan
	if got := p.WaitingToo("2 of 3"); got != "2 of 3" {
		t.Errorf("%q", got)
	}
	p.WaitFor("Waiting", "pod a is Ready")
	if got := p.WaitingToo("2 of 3"); got != "2 of 3; waiting until pod a is Ready" {
		t.Errorf("%q", got)
	}
}
