// Package golden compares the output of tests with golden files in testdata. Golden files are reviewed
// manually.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "update the golden files in testdata")

// inModule returns a path in the module as one that is relative to the folder of the test.
func inModule(t *testing.T, names ...string) string {
	t.Helper()
	for root := "."; len(root) < 30; root = filepath.Join(root, "..") {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(append([]string{root}, names...)...)
		}
	}
	t.Fatal("no folder above the test has a go.mod")
	return ""
}

// Check fails the test if got differs from the file. With -update it writes got to the file instead.
func Check(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; create it with -update and review it", err)
	}
	if got == string(want) {
		return
	}
	old, now := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(old), len(now)) {
		if old[i] != now[i] {
			t.Fatalf("%s differs from line %d (update it with -update):\nwant: %s\ngot:  %s\nfull output:\n%s", file, i+1, old[i], now[i], got)
		}
	}
	t.Fatalf("%s has %d lines, got %d (update it with -update):\n%s", file, len(old), len(now), got)
}
