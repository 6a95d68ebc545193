package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEachRuleHasAFault tests that no rule is left out.
func TestEachRuleHasAFault(t *testing.T) {
	for _, r := range rules {
		if !slices.ContainsFunc(faults, func(f seeded) bool { return f.breaks == r.name }) {
			t.Errorf("no fault breaks rule %s", r.name)
		}
	}
	if len(rules) != len(faults) {
		t.Errorf("%d faults break %d rules", len(faults), len(rules))
	}
}

// TestNamesOfTheModel tests that the rules that the model drops have its names.
func TestNamesOfTheModel(t *testing.T) {
	model, err := os.ReadFile(filepath.Join("..", "..", "controllers", "internal", "fencing", "model_state_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []rule{endsItself, renewsFirst, startsWithFresh, renewalBound, handoverBound, takeoverBound, assignmentBound, handsOverAfter, watchesWholeTime} {
		if !strings.Contains(string(model), "\n\t"+string(r)+" ") {
			t.Errorf("the model has no rule %s", r)
		}
	}
}
