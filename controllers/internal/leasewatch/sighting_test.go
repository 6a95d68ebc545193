package leasewatch

import (
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	var seen Sighting
	for _, row := range []struct {
		version   string
		now, want int
	}{
		{"", 0, 0}, {"", 5, 0}, // it is missing
		{"1", 6, 6}, {"1", 9, 6}, {"2", 10, 10}, {"2", 30, 10}, {"", 31, 31},
	} {
		if got := seen.Since(row.version, at(row.now)); !got.Equal(at(row.want)) {
			t.Errorf("version %q at %d s is known since %s", row.version, row.now, got.Sub(noon))
		}
	}
}
