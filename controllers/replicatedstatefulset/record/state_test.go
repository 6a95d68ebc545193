package record_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// TestStatesByStatus checks the state for each exit code of status.
func TestStatesByStatus(t *testing.T) {
	for _, r := range []struct {
		code                 int
		state, withFollowers record.State
	}{
		{0, record.Primary, record.Secondary},
		{1, record.Failed, record.Failed},
		{7, record.Idle, record.Idle},
		{8, record.Primary, record.Primary},
		{9, record.Failed, record.Failed},
		{record.OCFDegraded, record.Primary, record.Secondary},
		{record.OCFDegradedPrimary, record.Primary, record.Primary},
	} {
		for want, set := range map[*record.State]*v1alpha1.ReplicatedStatefulSet{
			&r.state: fixture.SetOf(1, 1, v1alpha1.CommandSecondary), &r.withFollowers: fixture.SetOf(1, 1),
		} {
			if got := facts.Derive(fixture.WorldOf(set, fixture.Pod(0).Status(r.code))).Members[0].State; got != *want {
				t.Errorf("code %d with %d commands: %s, want %s", r.code, len(set.Spec.Pod.Commands), got, *want)
			}
		}
	}
}

func TestSequences(t *testing.T) {
	printed := func(text string) podexec.Result { return podexec.Result{Outcome: podexec.Succeeded, Stdout: text} }
	cut, failed := printed("7"), printed("7")
	cut.Cut, failed.Outcome = true, podexec.Failed
	for name, r := range map[string]struct {
		result podexec.Result
		want   uint64
		ok     bool
	}{
		"a number":              {printed(" 18446744073709551615\n"), 1<<64 - 1, true},
		"zero":                  {printed("0"), 0, true},
		"a negative number":     {printed("-1"), 0, false},
		"two numbers":           {printed("1 2"), 0, false},
		"nothing":               {printed(""), 0, false},
		"more than is kept":     {cut, 0, false},
		"a command that failed": {failed, 0, false},
	} {
		if n, ok := record.SequenceOf(r.result); ok != r.ok || ok && n != r.want {
			t.Errorf("%s: %d, %t", name, n, ok)
		}
	}
}

func TestCommandOfAPod(t *testing.T) {
	commands := []v1alpha1.RunningCommand{{UID: "a", Name: "stop"}, {UID: "b", Name: "promote"}}
	if c := record.CommandOf(commands, "b"); c != &commands[1] {
		t.Errorf("found %v", c)
	}
	if c := record.CommandOf(commands, "c"); c != nil {
		t.Errorf("found %v for a pod without a command", c)
	}
}
