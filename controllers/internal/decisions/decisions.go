// Package decisions keeps the last decisions about an object in its status. Events have more detail, but
// expire after an hour.
package decisions

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// Limits of status.decisions. The schemas of the kinds have the same limits, except that of the size.
const (
	// maxEntries is the max number of entries.
	maxEntries = 20
	// maxBytes is the max size in bytes of JSON. A single entry is always smaller.
	maxBytes = 4096
	// maxReason and maxMessage are the max sizes in bytes of the texts of an entry.
	maxReason, maxMessage = 64, 128
	// maxYear is the last year of a time in RFC 3339.
	maxYear = 9999
)

// Decision is a decision as it is recorded in a status.
type Decision struct {
	Time    metav1.Time `json:"time"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	Warning bool        `json:"warning,omitempty"`
	Count   int32       `json:"count,omitempty"`
}

// Entry is the type of the entries of status.decisions. Each kind has its own.
type Entry interface {
	~struct {
		Time    metav1.Time `json:"time"`
		Reason  string      `json:"reason"`
		Message string      `json:"message,omitempty"`
		Warning bool        `json:"warning,omitempty"`
		Count   int32       `json:"count,omitempty"`
	}
}

// Append returns a list with decisions added, the newest last. A repeated decision is merged with the
// earlier one. The oldest decisions are dropped until the list is within its limits. The list comes from a
// status, which others can write: its invalid entries are dropped, and too long ones are truncated.
func Append[E Entry](list []E, news ...Decision) []E {
	var all []Decision
	for _, e := range list[max(0, len(list)-maxEntries):] {
		all = add(all, Decision(e))
	}
	for _, d := range news {
		all = add(all, d)
	}
	var kept []E
	for _, d := range all[excess(all):] {
		kept = append(kept, E(d))
	}
	return kept
}

// add adds a decision at the end. If the list has the same decision, it is removed there, and counted.
func add(all []Decision, d Decision) []Decision {
	d.Time = metav1.NewTime(d.Time.UTC().Truncate(time.Second)) // the API server stores seconds
	d.Reason, d.Message = excerpt.Of(d.Reason, maxReason), excerpt.Of(d.Message, maxMessage)
	// The API server refuses a zero time, which is written as null, and a year that does not have four digits.
	isWritable := !d.Time.IsZero() && d.Time.Year() >= 1 && d.Time.Year() <= maxYear
	if !isWritable || d.Reason == "" {
		return all
	}
	d.Count = max(d.Count, 1)
	if i := slices.IndexFunc(all, func(o Decision) bool { return o.Reason == d.Reason && o.Message == d.Message }); i >= 0 {
		d.Count = int32(min(int64(d.Count)+int64(max(all[i].Count, 1)), math.MaxInt32))
		all = slices.Delete(all, i, i+1)
	}
	if d.Count == 1 {
		d.Count = 0 // is omitted
	}
	return append(all, d)
}

// excess returns the number of the oldest decisions that exceed the limits.
func excess(all []Decision) int {
	bytes := len("[]")
	for i, d := range slices.Backward(all) {
		text, err := json.Marshal(d)
		bytes += len(text) + len(",")
		if err != nil || bytes-len(",") > maxBytes || len(all)-i > maxEntries {
			return i + 1
		}
	}
	return 0
}
