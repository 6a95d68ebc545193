package facts

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is the eviction book's entry for a pod.
type Entry struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Set is the ReplicatedStatefulSet of the pod.
	Set string `json:"set,omitempty"`
	// At is when the eviction was last requested. By is the requester, for administrators.
	At time.Time `json:"at"`
	By string    `json:"by"`
}

// IsWithin reports whether the entry is younger than the period. It tolerates clock skew.
func (e Entry) IsWithin(period time.Duration, now time.Time) bool {
	return now.Sub(e.At).Abs() < period
}

// EntriesOf parses a book. It skips invalid entries.
func EntriesOf(data map[string]string) map[types.UID]Entry {
	entries := make(map[types.UID]Entry, len(data))
	for uid, text := range data {
		var e Entry
		if json.Unmarshal([]byte(text), &e) == nil {
			entries[types.UID(uid)] = e
		}
	}
	return entries
}
