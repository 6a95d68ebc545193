package main

import (
	"strings"
	"testing"
)

// TestReport tests that the report has the number of checks of each rule, and that a good trace checks all rules.
func TestReport(t *testing.T) {
	read := recorded(t, 1)
	c := check(read, defaults())
	var out strings.Builder
	if code := c.report(&out); code != exitPassed {
		t.Errorf("exit code %d", code)
	}
	for _, r := range rules {
		if c.checks[r.name] == 0 {
			t.Errorf("rule %s was not checked", r.name)
		}
		if !strings.Contains(out.String(), " "+string(r.name)+": "+r.meaning) {
			t.Errorf("rule %s is not in the report", r.name)
		}
	}
	c.missing = 3
	out.Reset()
	c.report(&out)
	if !strings.Contains(out.String(), "3 versions are not in the audit log") {
		t.Errorf("the report is\n%s", out.String())
	}
}
