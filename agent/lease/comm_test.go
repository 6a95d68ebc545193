package lease

import (
	"os"
	"strings"
	"testing"
)

func TestComm(t *testing.T) {
	before, err := os.ReadFile(ownComm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := setComm(strings.TrimSpace(string(before))); err != nil {
			t.Error(err)
		}
	})
	for name, want := range map[string]bool{commWaiting: false, commRunning: true} {
		if err := setComm(name); err != nil {
			t.Fatal(err)
		}
		if got, err := IsStarted(ownComm); err != nil || got != want {
			t.Errorf("%s is started: %v (%v), want %v", name, got, err, want)
		}
	}
	if _, err := IsStarted("/nonexistent"); err == nil {
		t.Error("a missing file has no error")
	}
}
