package main

import (
	"testing"
	"time"
)

// TestHistories tests that writes are sorted by version, that a request that has changed nothing is left out, and that a
// recreated Lease is another one.
func TestHistories(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := func(lease, uid string, version uint64, after time.Duration) *write {
		return &write{lease: lease, received: at.Add(after), after: state{uid: uid, version: version}}
	}
	changed := w("a/b.singleton", "1", 3, time.Second)
	all := (&trace{writes: []*write{
		w("a/b.singleton", "2", 9, 5), w("a/b.singleton", "1", 4, 4), w("a/b.singleton", "1", 3, 2*time.Second), changed,
		w("a/c.singleton", "3", 1, 0), w("a/b.singleton", "1", 2, 9),
	}}).histories()
	if len(all) != 2 || len(all["a/c.singleton"].lives) != 1 {
		t.Fatalf("the histories are %v", all)
	}
	h := all["a/b.singleton"]
	if len(h.lives) != 2 || len(h.lives[0]) != 3 || h.lives[0][1] != changed || h.lives[0].first().after.version != 2 || h.lives[0].last().after.version != 4 || h.lives[1].first().after.version != 9 {
		t.Errorf("the writes are %+v", h.writes())
	}
	if got := len(h.writes()); got != 4 {
		t.Errorf("%d writes, want 4", got)
	}
}
