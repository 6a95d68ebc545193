package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestEntriesOfTheBook(t *testing.T) {
	entries := facts.EntriesOf(map[string]string{
		"a": `{"namespace":"ns","pod":"rss-db-0","set":"db","at":"2026-03-01T12:00:00Z","by":"drainer"}`,
		"b": "not JSON",
	})
	want := facts.Entry{Namespace: "ns", Pod: "rss-db-0", Set: "db", At: fixture.Noon, By: "drainer"}
	if len(entries) != 1 || entries["a"] != want {
		t.Errorf("read %+v, want %+v", entries, want)
	}
	for at, want := range map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false, -59 * time.Second: true, -time.Minute: false} {
		if got := (facts.Entry{At: fixture.Noon}).IsWithin(time.Minute, fixture.Noon.Add(at)); got != want {
			t.Errorf("%s after the request: %t", at, got)
		}
	}
}
