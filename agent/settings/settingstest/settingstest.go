// Package settingstest tests the settings that users of an application can set.
package settingstest

import (
	"reflect"
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

// RoundTrip fails if an encoded configuration is not decoded as want, which has the defaults, or if it is accepted
// after any of these replacements. It returns the decoded configuration.
func RoundTrip[C any](t *testing.T, encode func() (string, error), decode func(string) (C, error), want C, bad ...[2]string) C {
	t.Helper()
	text, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the configuration is %+v (%v), want %+v", got, err, want)
	}
	refused := []string{"", "{"}
	for _, replaced := range bad {
		refused = append(refused, strings.Replace(text, replaced[0], replaced[1], 1))
	}
	for _, text := range refused {
		if _, err := decode(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	return got
}
