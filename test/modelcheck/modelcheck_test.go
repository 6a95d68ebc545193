package modelcheck_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/test/modelcheck"
)

// counter counts to 5 in steps of 1 and 2, and must not be the forbidden number.
func counter(forbidden int) modelcheck.Model[int] {
	return modelcheck.Model[int]{
		Next: func(from int, reach func(int32, int)) {
			for _, step := range []int{1, 2} {
				if from+step <= 5 {
					reach(int32(step), from+step)
				}
			}
		},
		Say:    func(label int32) string { return map[int32]string{1: "one", 2: "two"}[label] },
		Broken: func(n int) bool { return n == forbidden },
	}
}

func TestTheShortestWayIsFound(t *testing.T) {
	x, at := modelcheck.Explore(counter(5))
	if at < 0 || x.States[at] != 5 || x.Story(at) != "one\ntwo\ntwo" {
		t.Errorf("state %d by %q", at, x.Story(at))
	}
	x, at = modelcheck.Explore(counter(6))
	if at >= 0 || len(x.States) != 6 || !x.Reaches(func(n int) bool { return n == 4 }) {
		t.Errorf("state %d of %v", at, x.States)
	}
}

// failures counts failed tests.
type failures struct {
	modelcheck.TB
	count int
}

func (f *failures) Fatalf(string, ...any) { f.count++ }

func TestWhatFailsATest(t *testing.T) {
	for _, row := range []struct {
		name  string
		check func(modelcheck.TB)
		fails int
	}{
		{"the guarantee holds", func(t modelcheck.TB) { modelcheck.Holds(t, counter(6)) }, 0},
		{"the guarantee is violated", func(t modelcheck.TB) { modelcheck.Holds(t, counter(5)) }, 1},
		{"it is violated without a rule", func(t modelcheck.TB) { modelcheck.Breaks(t, counter(5), "") }, 0},
		{"it holds without a rule", func(t modelcheck.TB) { modelcheck.Breaks(t, counter(6), "") }, 1},
		{"it holds for a reason", func(t modelcheck.TB) { modelcheck.Breaks(t, counter(6), "a reason") }, 0},
		{"it is violated in spite of a reason", func(t modelcheck.TB) { modelcheck.Breaks(t, counter(5), "a reason") }, 1},
	} {
		f := &failures{TB: t}
		if row.check(f); f.count != row.fails {
			t.Errorf("%s: %d failures", row.name, f.count)
		}
	}
}
