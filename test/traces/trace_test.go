package main

import (
	"reflect"
	"testing"
)

// TestClone tests that a change of a copy does not change the trace.
func TestClone(t *testing.T) {
	good, other := recorded(t, 2), recorded(t, 2)
	if len(good.writes) != len(other.writes) {
		t.Fatalf("the same seed has recorded %d and %d writes", len(good.writes), len(other.writes))
	}
	before := good.clone()
	if !reflect.DeepEqual(before, good) {
		t.Fatal("the copy differs")
	}
	c := good.clone()
	c.writes[0].lease, c.endings[0].pod, c.containers[0].pod, c.containers[0].marks[0].epoch, c.containers[0].last.line = "x", "x", "x", 99, 99
	c.writes = c.writes[1:]
	if !reflect.DeepEqual(before, good) {
		t.Error("a change of the copy has changed the trace")
	}
}

func TestNames(t *testing.T) {
	if namespaceOf("a/b.singleton") != "a" || !isSingleton("a/b.singleton") || isMember("a/b.singleton") || !isMember("a/b-0.member") || isSingleton("a/b-0.member") {
		t.Error("a name of a Lease is not recognized")
	}
	if got := (requester{account: "a"}).String(); got != "a" {
		t.Errorf("the requester is %q", got)
	}
	if got := (&state{duration: 15e9}).endAfter(); got != 10e9 {
		t.Errorf("the program ends after %s", got)
	}
}
