package controllers_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// minTested is the min percentage of the files of a kind that have a test file of their name in the
// same folder.
const minTested = 85

// isTestable reports whether a file is code of a kind that the operator runs. All stories and random orders of a kind
// run its simulation.
func (s source) isTestable() bool {
	room, _, _ := s.room()
	_, _, isKind := s.kind()
	name := path.Base(s.path)
	return isKind && room != "simulate" && !s.isForTests() && name != "doc.go" && !strings.HasPrefix(name, "zz_generated")
}

// untested returns the kinds of which too few files have a test file of their name.
func untested(sources []source) (faults []string) {
	var paths, kinds []string
	for _, s := range sources {
		paths = append(paths, s.path)
		if kind, _, isKind := s.kind(); isKind && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range kinds {
		all, without := 0, []string(nil)
		for _, s := range sources {
			of, file, _ := s.kind()
			if of != kind || !s.isTestable() {
				continue
			}
			all++
			if !slices.Contains(paths, strings.TrimSuffix(s.path, ".go")+"_test.go") {
				without = append(without, file)
			}
		}
		if tested := all - len(without); tested*100 < all*minTested {
			faults = append(faults, fmt.Sprintf("%d of %d files of controllers/%s have a test file of their name, and the min is %d %%; these have none: %s",
				tested, all, kind, minTested, strings.Join(without, ", ")))
		}
	}
	return faults
}

// TestFilesHaveTests checks that tests are beside the files that they test.
func TestFilesHaveTests(t *testing.T) {
	for _, fault := range untested(readTree(t)) {
		t.Error(fault)
	}
}

func TestUntestedFilesAreFound(t *testing.T) {
	read := func(paths ...string) (sources []source) {
		for _, p := range paths {
			sources = append(sources, source{path: p})
		}
		return sources
	}
	tested := []string{"controllers/one/doc.go", "controllers/one/rules/doc.go", "controllers/one/fixture/world.go"}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		tested = append(tested, "controllers/one/rules/"+name+".go", "controllers/one/rules/"+name+"_test.go")
	}
	if faults := untested(read(append(tested, "controllers/one/rules/g.go")...)); len(faults) > 0 {
		t.Errorf("found %q with 6 of 7 files tested", faults)
	}
	want := "6 of 8 files of controllers/one have a test file of their name, and the min is 85 %; these have none: rules/g.go, spec/a.go"
	faults := untested(read(append(tested, "controllers/one/rules/g.go", "controllers/one/spec/a.go")...))
	if len(faults) != 1 || faults[0] != want {
		t.Errorf("found %q", faults)
	}
}
