package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRun tests the exit codes and the output.
func TestRun(t *testing.T) {
	good := record(t, 1).save()
	bad, p := holder(t)
	bad.handOver(mailer, p, "b_1")
	rejected := bad.save()
	audit := filepath.Join(good, "logs", "audit.log")
	for _, row := range []struct {
		name  string
		args  []string
		code  int
		print string
	}{
		{"a good trace", []string{good}, exitPassed, "PASSED"},
		{"two traces", []string{good, rejected}, exitRejected, "handoverNamed: "},
		{"all seeded faults", []string{"-mutate", "all", "-seed", "3", good}, exitPassed, "oneProgram: rejects the seeded fault"},
		{"all seeded faults in a bad trace", []string{"-mutate", "all", rejected}, exitRejected, "FAILED: 1 violations"},
		{"a seeded fault", []string{"-mutate", "renewsFirst", good}, exitRejected, "FAILED: 1 violations"},
		{"a fault that does not exist", []string{"-mutate", "x", good}, exitUnusable, `no fault breaks a rule "x"`},
		{"a fault without a place", []string{"-mutate", "takeoverBound", rejected}, exitUnusable, "no place"},
		{"an audit log alone", []string{audit}, exitUnusable, "UNUSABLE: no log of a container"},
		{"no argument", nil, exitUnusable, "no folder or file is named"},
		{"a missing folder", []string{filepath.Join(good, "missing")}, exitUnusable, "missing"},
		{"an empty folder and a good trace", []string{t.TempDir(), good}, exitPassed, "SKIPPED"},
		{"two empty folders", []string{t.TempDir(), t.TempDir()}, exitUnusable, "no trace was checked"},
		{"a folder with an audit log alone and a good trace", []string{filepath.Join(good, "logs"), good}, exitUnusable, "UNUSABLE: no log of a container"},
		{"an empty folder", []string{t.TempDir()}, exitUnusable, "UNUSABLE: no write of a Lease"},
		{"an unknown flag", []string{"-x"}, exitUnusable, "-mutate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out strings.Builder
			if code := run(row.args, &out, &out); code != row.code || !strings.Contains(out.String(), row.print) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, row.code, row.print, out.String())
			}
		})
	}
}
