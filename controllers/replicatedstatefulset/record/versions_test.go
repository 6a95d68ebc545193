package record_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestOnlyWhatSequencePrintsIsKept tests that the operator keeps no output of commands except one
// number.
func TestOnlyWhatSequencePrintsIsKept(t *testing.T) {
	f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Idle()))
	for name := range f.Set.Spec.Pod.Commands {
		want := 0
		if name == v1alpha1.CommandSequence {
			want = spec.MaxSequence
		}
		if c := f.Command(f.Members[0], name, name, 0); c.Keep != want {
			t.Errorf("%s keeps %d bytes, want %d", name, c.Keep, want)
		}
	}
	for _, row := range []struct {
		prints podexec.Result
		number bool
	}{
		{podexec.Result{Outcome: podexec.Succeeded, Stdout: "18446744073709551615\n"}, true},
		{podexec.Result{Outcome: podexec.Succeeded, Stdout: "18446744073709551616\n"}, false},
		{podexec.Result{Outcome: podexec.Succeeded, Stdout: "7", Cut: true}, false},
	} {
		if _, ok := record.SequenceOf(row.prints); ok != row.number {
			t.Errorf("%q, cut %t: it is a number: %t", row.prints.Stdout, row.prints.Cut, ok)
		}
	}
}
