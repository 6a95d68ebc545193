package pause

import (
	"slices"
	"testing"
	"time"
)

func TestPausesGrow(t *testing.T) {
	for longest, want := range map[time.Duration][]time.Duration{
		50 * time.Millisecond: {10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond},
		5 * time.Millisecond:  {5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond},
	} {
		next := Growing(longest)
		var got []time.Duration
		for range want {
			got = append(got, next())
		}
		if !slices.Equal(got, want) {
			t.Errorf("up to %s the pauses are %v", longest, got)
		}
	}
}
