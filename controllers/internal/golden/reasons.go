package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	meaningRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([a-z ]+) \\|")
	reasonRow  = regexp.MustCompile("(?m)^\\| (?:True )?`(\\w+)` \\|")
)

// section returns the part of a page from the heading to the next heading.
func section(t *testing.T, heading string, page ...string) string {
	t.Helper()
	text, err := os.ReadFile(inModule(t, append([]string{"docs"}, page...)...))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n### "+heading)
	if !found {
		t.Fatalf("%s has no section %s", filepath.Join(page...), heading)
	}
	part, _, _ := strings.Cut(rest, "\n##")
	return part
}

// Reasons checks readiness.md and the page of the kind. Each reason of condition Degraded must be
// listed in readiness.md with its effect on clients that wait for readiness. Each reason on the page of
// the kind must have an effect.
func Reasons[E fmt.Stringer](t *testing.T, kind string, effects map[string]E) {
	t.Helper()
	promised := map[string]string{}
	for _, row := range meaningRow.FindAllStringSubmatch(section(t, kind+"\n", "readiness.md"), -1) {
		promised[row[1]] = row[2]
	}
	for reason, effect := range effects {
		if promised[reason] != effect.String() {
			t.Errorf("docs/readiness.md lists %s of %s as %q, want %q", reason, kind, promised[reason], effect)
		}
		delete(promised, reason)
	}
	for reason := range promised {
		t.Errorf("docs/readiness.md lists %s of %s, which has no effect", reason, kind)
	}
	listed := reasonRow.FindAllStringSubmatch(section(t, "Degraded", "kinds", strings.ToLower(kind)+".md"), -1)
	if len(listed) == 0 {
		t.Errorf("the page of %s lists no reason of Degraded", kind)
	}
	for _, row := range listed {
		if _, decided := effects[row[1]]; !decided {
			t.Errorf("the page of %s lists reason %s, and the code does not define whether it requires manual intervention", kind, row[1])
		}
	}
}
