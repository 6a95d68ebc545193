package galera

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

func begins(t *testing.T, after generation, created, epoch, transaction int64) generation {
	t.Helper()
	next, err := after.next(driver.Start{Created: created, Epoch: epoch}, transaction)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// A copy of a generation that began later is newer than a longer one of an earlier generation.
func TestTheOrderOfGenerations(t *testing.T) {
	first := begins(t, generation{}, 1764338400, 1, 0)
	second := begins(t, first, 1764338400, 4, 100)
	rival := begins(t, first, 1764338400, 5, 105) // from another copy of the first generation
	restored := begins(t, second, 1864338400, 1, 120)
	for _, row := range []struct{ older, newer uint64 }{
		{0, first.sequence(0)},
		{first.sequence(7), first.sequence(8)},
		{first.sequence(1 << 40), second.sequence(100)},
		{second.sequence(1 << 40), rival.sequence(105)},
		{second.sequence(1 << 40), restored.sequence(0)},
	} {
		if row.older >= row.newer {
			t.Errorf("%d is not below %d", row.older, row.newer)
		}
	}
}

// Only a copy whose transactions the cluster has can continue with its data.
func TestWhichCopiesAGenerationExtends(t *testing.T) {
	first := begins(t, generation{}, 1, 1, 0)
	second := begins(t, first, 1, 4, 100)
	rival := begins(t, first, 1, 5, 105)
	third := begins(t, second, 1, 6, 200)
	for _, row := range []struct {
		name        string
		copied      generation
		transaction int64
		want        bool
	}{
		{"of this generation", second, 150, true},
		{"of the one before", first, 100, true},
		{"with more than the one before had", first, 101, false},
		{"of a rival", rival, 100, false},
		{"of a later one", third, 100, false},
		{"that was received", generation{}, 100, false},
	} {
		if got := second.extends(row.copied, row.transaction); got != row.want {
			t.Errorf("a copy %s: %t", row.name, got)
		}
	}
	// The seed of the second generation failed before its first transaction.
	if repeated := begins(t, second, 1, 6, 100); !repeated.extends(first, 100) || repeated.extends(first, 101) || repeated.Number <= second.Number {
		t.Errorf("a repeated seed begins %+v", repeated)
	}
	if third.extends(first, 1) {
		t.Error("a copy of the first generation continues in the third one")
	}
}

func TestTheNameOfAGeneration(t *testing.T) {
	largest := generation{Number: maxGeneration, Previous: maxGeneration - 1, Begin: 1<<seqnoBits - 1, Start: driver.Start{Created: 1<<31 - 1, Epoch: 60_000_000}}
	for _, g := range []generation{{}, begins(t, generation{}, 1764338400, 1, 0), largest} {
		var got generation
		if err := got.UnmarshalText([]byte(g.String())); err != nil || got != g || len(g.String()) > maxName {
			t.Errorf("%s is parsed as %+v (%v), want %+v", g, got, err, g)
		}
	}
	for _, bad := range []string{"", "my_cluster", "1.2.3.4", "1.2.3.4.5.6", "1.2.-3.4.5", "1.2.ü.4.5"} {
		if err := new(generation).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, err := largest.next(driver.Start{Created: 1, Epoch: 1}, 1); err == nil {
		t.Error("there is a generation after the last one")
	}
}
