package order

import (
	"strings"
	"testing"
)

func TestIsNew(t *testing.T) {
	for _, row := range []struct {
		sentence             string
		generation, observed int64
		want                 bool
	}{
		{"created and not yet reconciled", 1, -1, true},
		{"created and reconciled", 1, 1, true},
		{"changed before the first reconcile", 2, -1, true},
		{"changed with its status removed", 7, 0, true},
		{"restored with the status of its backup", 2, 7, true},
		{"changed since the last reconcile", 2, 1, false},
		{"reconciled since the last change", 2, 2, false},
	} {
		if got := IsNew(row.generation, row.observed); got != row.want {
			t.Errorf("%s: %t", row.sentence, got)
		}
	}
}

func TestIsID(t *testing.T) {
	for id, want := range map[string]bool{
		"2026-11-25": true, "a": true, strings.Repeat("a", 63): true,
		"": false, strings.Repeat("a", 64): false, "A": false, "-a": false, "a.b": false, "a\n": false,
	} {
		if got := IsID(id); got != want {
			t.Errorf("%q: %t", id, got)
		}
	}
}
