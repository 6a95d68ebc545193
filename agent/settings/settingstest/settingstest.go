// Package settingstest tests the settings that users of an application can set.
package settingstest

import (
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Check fails if a function returns other problems than expected. Each row has the name and the value of a
// setting, and a part of the reason why it is refused, or "" if it is allowed.
func Check(t *testing.T, problemsOf func(map[string]string) []settings.Problem, rows [][3]string) {
	t.Helper()
	for _, row := range rows {
		name, value, want := row[0], row[1], row[2]
		problems := problemsOf(map[string]string{name: value})
		got := ""
		if len(problems) > 0 {
			got = problems[0].Reason
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s = %q: %v, want %q", name, value, problems, want)
		}
	}
}
