package main

import (
	"testing"
	"time"
)

func TestExecsAtOneTimeAreCoveredOnce(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	exec := func(from, to int) request { return request{Received: at(from), Answered: at(to)} }
	for _, row := range []struct {
		name string
		seen []request
		want int
	}{
		{"none", nil, 0},
		{"one after another", []request{exec(20, 30), exec(40, 60)}, 30},
		{"at one time", []request{exec(20, 60), exec(30, 40), exec(50, 70)}, 50},
		{"begun before, or ended after", []request{exec(0, 20), exec(90, 200)}, 20},
		{"in any order", []request{exec(40, 60), exec(20, 30)}, 30},
		{"over before", []request{exec(0, 5)}, 0},
	} {
		if got := covered(row.seen, at(10), at(100)); got != time.Duration(row.want)*time.Millisecond {
			t.Errorf("%s: %v, want %d ms", row.name, got, row.want)
		}
	}
}
