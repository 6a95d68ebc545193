package configuration

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Record describes the hash in the pod template of a StatefulSet. It is an annotation of the
// StatefulSet, so a change of it restarts no pods.
type Record struct {
	// Key is the name of the key with which Hash was made.
	Key string `json:"key"`
	// Seen is the digest of the versions of all sources.
	Seen string `json:"seen"`
	// Hash is the hash of the contents.
	Hash string `json:"hash"`
	// Incomplete is true if a required part was missing at that time.
	Incomplete bool `json:"incomplete,omitempty"`
	// Immutable contains the UIDs of the immutable sources by name.
	Immutable map[string]string `json:"immutable,omitempty"`
	// Recreated contains the immutable sources that were deleted and recreated before this record was
	// made. Cached contains the pods that may have their old contents.
	Recreated []string    `json:"recreated,omitempty"`
	Cached    []types.UID `json:"cached,omitempty"`
	// Before contains the nodes of the pods with an earlier configuration, by name, until the next pod of
	// that name was seen.
	Before map[string]string `json:"before,omitempty"`
	// Restarted is when the last restart for a change began.
	Restarted *metav1.Time `json:"restarted,omitempty"`
}

// ParseRecord parses a record. It returns nil if the record is missing or invalid.
func ParseRecord(text string) *Record {
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Key == "" {
		return nil
	}
	return &r
}

// String returns the record as the value of the annotation.
func (r Record) String() string {
	text, _ := json.Marshal(r) // cannot fail: strings, a bool and a time
	return string(text)
}

// State is the current configuration of one pod template.
type State struct {
	// Key, Seen and Hash are as in Record. Hash is empty if no contents were read, because nothing can
	// have changed, or for the reason in Unreadable.
	Key, Seen, Hash string
	// Missing lists the required parts that are missing, and where they are required.
	Missing []string
	// Unreadable is the reason why a source could not be read. The contents are then unknown.
	Unreadable string

	// uids contains the UIDs of all sources by name, and immutable those of the immutable sources.
	uids, immutable map[string]string
}

// note records the UID of a source.
func (s *State) note(o Origin, e edition, immutable bool) {
	if e.uid == "" {
		return
	}
	if s.uids == nil {
		s.uids, s.immutable = map[string]string{}, map[string]string{}
	}
	s.uids[o.String()] = e.uid
	if immutable {
		s.immutable[o.String()] = e.uid
	}
}

// Record returns the record of a StatefulSet with this configuration.
func (s State) Record() Record {
	return Record{Key: s.Key, Seen: s.Seen, Hash: s.Hash, Incomplete: len(s.Missing) > 0, Immutable: s.immutable}
}

// RecordAfter returns the record of a StatefulSet with this configuration, while pods with earlier
// records exist.
func (s State) RecordAfter(earlier ...*Record) Record {
	next := s.Record()
	for _, r := range earlier {
		next.Recreated = append(next.Recreated, s.recreatedSince(r)...)
	}
	slices.Sort(next.Recreated)
	next.Recreated = slices.Compact(next.Recreated)
	return next
}

// recreatedSince returns the immutable sources of a record that were deleted and recreated since. It
// includes those that were recreated earlier, if pods still have their old contents.
func (s State) recreatedSince(r *Record) (all []string) {
	if r == nil {
		return nil
	}
	for name, uid := range r.Immutable {
		if now := s.uids[name]; now != "" && now != uid {
			all = append(all, name)
		}
	}
	for _, name := range r.Recreated {
		if s.uids[name] != "" && len(r.Cached) > 0 {
			all = append(all, name)
		}
	}
	return all
}

// atRest reports whether the versions alone show that no contents changed, so that none must be read.
func (r *Record) atRest(key, seen string) bool {
	return r != nil && r.Key == key && r.Seen == seen && !r.Incomplete
}

// Changed reports whether the contents are known to differ from those of the record.
func (s State) Changed(r *Record) bool {
	if r == nil || s.Hash == "" {
		return false
	}
	if r.Key != s.Key { // hashes of different keys cannot be compared; versions can
		return r.Seen != s.Seen
	}
	return r.Hash != s.Hash
}

// Complete reports whether all contents are known and all required parts exist.
func (s State) Complete() bool { return len(s.Missing) == 0 && s.Unreadable == "" }
