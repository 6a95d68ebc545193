package main

import (
	"maps"
	"slices"
	"testing"
)

const seeds = 18

// TestFaults tests that the rule of each seeded fault rejects it, and no other rule. The trace passes without the fault.
func TestFaults(t *testing.T) {
	places := map[rule]int{}
	for seed := range uint64(seeds) {
		good := recorded(t, seed%6)
		if seed < 6 {
			for _, v := range check(good, defaults()).violations {
				t.Errorf("seed %d: the good trace: %s", seed, v)
			}
		}
		for _, f := range faults {
			faulty, what := f.in(good, defaults(), seed)
			if faulty == nil {
				continue
			}
			places[f.breaks]++
			c := check(faulty, defaults())
			if broken := slices.Collect(maps.Keys(c.broken())); !slices.Equal(broken, []rule{f.breaks}) {
				t.Errorf("seed %d: the fault that breaks %s (%s) breaks %v", seed, f.breaks, what, c.violations)
			}
			if c.unusable() != "" {
				t.Errorf("seed %d: the fault that breaks %s makes the trace unusable: %s", seed, f.breaks, c.unusable())
			}
		}
		for _, v := range check(good, defaults()).violations {
			t.Errorf("seed %d: the good trace was changed: %s", seed, v)
		}
	}
	for _, f := range faults {
		if places[f.breaks] < seeds/2 {
			t.Errorf("%d of %d traces have a place for the fault that breaks %s", places[f.breaks], seeds, f.breaks)
		}
	}
}
