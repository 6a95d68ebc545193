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
	for name, want := range map[string]bool{commWaiting: false, commRunning: true, armedComm(3): false} {
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

func TestTheEpochInTheName(t *testing.T) {
	for epoch, want := range map[int64]bool{-1: false, 0: false, 1: true, 999999999: true, 1000000000: false} {
		if isShowable(epoch) != want {
			t.Errorf("epoch %d is showable: %v", epoch, !want)
		}
	}
	for name, want := range map[string]int64{
		"armed-7": 7, armedComm(999999999): 999999999, commWaiting: 0, "": 0, "armed-": 0, "armed-07": 0, "armed-x": 0, "armed--1": 0,
	} {
		if got := armedEpoch(name); got != want {
			t.Errorf("%q shows epoch %d, want %d", name, got, want)
		}
	}
}
