package record_test

import (
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// TestRevisionName verifies E36: 40 characters are enough for the revision of every version number.
func TestRevisionName(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	for number, want := range map[int64]string{0: "", 2: "v2-0123456789abcdef", 1<<63 - 1: "v9223372036854775807-0123456789abcdef"} {
		if got := record.RevisionName(number, digest); got != want || len(got) > status.MaxRevision {
			t.Errorf("version %d: got %q, want %q", number, got, want)
		}
	}
	if got := record.RevisionName(1, ""); got != "v1-" {
		t.Errorf("got revision %q without a digest", got)
	}
}
