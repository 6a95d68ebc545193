package memory

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// size returns the number of stored values.
func (r *Recent[G, K, V]) size() (n int) {
	for _, group := range r.groups {
		n += len(group.newer) + len(group.older)
	}
	return n
}

func TestRecent(t *testing.T) {
	var r Recent[string, int, string]
	if _, known := r.Get("ns", 1); known {
		t.Error("a value exists that was never stored")
	}
	r.Remove("ns", 1)
	r.Put("ns", 1, "a", 10, noon)
	r.Put("ns", 2, "b", 10, noon)
	r.Put("other", 1, "c", 10, noon)
	if value, known := r.Get("ns", 1); !known || value != "a" {
		t.Errorf("got %q, known %t", value, known)
	}
	if value, known := r.Get("other", 1); !known || value != "c" {
		t.Errorf("got %q in the other group, known %t", value, known)
	}
	r.Put("ns", 1, "d", 10, noon)
	if value, _ := r.Get("ns", 1); value != "d" {
		t.Errorf("got %q after it was replaced", value)
	}
	r.Remove("ns", 1)
	if _, known := r.Get("ns", 1); known {
		t.Error("the value exists after it was removed")
	}
	r.Forget("ns")
	if _, known := r.Get("ns", 2); known {
		t.Error("the value exists after its group was removed")
	}
	if _, known := r.Get("other", 1); !known {
		t.Error("the other group was removed as well")
	}
}

// TestN8RecentIsBounded verifies that a group keeps its newest values, that it has at most twice as many
// as asked for, and that it has no effect on another group.
func TestN8RecentIsBounded(t *testing.T) {
	var r Recent[string, int, int]
	r.Put("neighbor", -1, -1, 10, noon)
	for i := range 10_000 {
		r.Put("ns", i, i, 10, noon)
		if n := r.size(); n > 21 {
			t.Fatalf("after %d values it stores %d", i+1, n)
		}
		for newest := max(0, i-9); newest <= i; newest++ {
			if value, known := r.Get("ns", newest); !known || value != newest {
				t.Fatalf("after %d values, value %d is %d, known %t", i+1, newest, value, known)
			}
		}
	}
	if _, known := r.Get("neighbor", -1); !known {
		t.Error("a value of another group was dropped")
	}
}

// TestRecentRemovesFromBothGenerations verifies that a value is removed however old it is, also if it
// was stored again.
func TestRecentRemovesFromBothGenerations(t *testing.T) {
	var r Recent[string, int, int]
	for _, key := range []int{1, 2, 1} {
		r.Put("ns", key, key, 1, noon)
	}
	for _, key := range []int{1, 2} {
		r.Remove("ns", key)
		if _, known := r.Get("ns", key); known {
			t.Errorf("value %d is known after it was removed", key)
		}
	}
}

// TestRecentDropsOldValues verifies that a value is kept for recentTime, and no longer than twice as
// long if others follow.
func TestRecentDropsOldValues(t *testing.T) {
	var r Recent[string, int, int]
	r.Put("old", 1, 1, 10, noon)
	for after := time.Minute; after <= 3*recentTime; after += time.Minute {
		r.Put("busy", int(after/time.Minute), 0, 1000, noon.Add(after))
		_, known := r.Get("old", 1)
		if after < recentTime && !known {
			t.Fatalf("the value expires after %s", after)
		}
		if after > 2*recentTime+pruneInterval && known {
			t.Fatalf("the value is still stored after %s", after)
		}
	}
	if _, known := r.groups["old"]; known {
		t.Error("an empty group is kept")
	}
	if n := r.size(); n > 121 {
		t.Errorf("it stores %d values", n)
	}
}

// TestN8RecentSearchesOnceAMinute verifies that the search for old values, which reads all groups, is
// done at most once in pruneInterval.
func TestN8RecentSearchesOnceAMinute(t *testing.T) {
	var r Recent[int, int, int]
	searches, last := 0, time.Time{}
	for i := range 10_000 {
		r.Put(i, 0, 0, 10, noon.Add(time.Duration(i)*10*time.Millisecond)) // 100 s
		if !r.pruned.Equal(last) {
			searches, last = searches+1, r.pruned
		}
	}
	if searches > 2 {
		t.Errorf("it scanned %d times in 100 s", searches)
	}
}
