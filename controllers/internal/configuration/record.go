package configuration

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Record says what the hash in the pod template of a StatefulSet stands for. It is an
// annotation of the StatefulSet, where a change restarts nothing.
type Record struct {
	// Key names the key that Hash was made with.
	Key string `json:"key"`
	// Seen is the digest of the versions of all that was hashed.
	Seen string `json:"seen"`
	// Hash is of the contents.
	Hash string `json:"hash"`
	// Incomplete is true when something required was missing then.
	Incomplete bool `json:"incomplete,omitempty"`
	// Immutable are the UIDs of the immutable sources, by their names.
	Immutable map[string]string `json:"immutable,omitempty"`
	// Recreated are the immutable sources that were deleted and created again before this
	// record was made, and Cached the pods that may have their old contents.
	Recreated []string    `json:"recreated,omitempty"`
	Cached    []types.UID `json:"cached,omitempty"`
	// Restarted is when the last restart for a change was begun.
	Restarted *metav1.Time `json:"restarted,omitempty"`
}

// ParseRecord reads a record; nil if there is none, or none that can be read.
func ParseRecord(text string) *Record {
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Key == "" {
		return nil
	}
	return &r
}

func (r Record) String() string {
	text, _ := json.Marshal(r) // strings, a bool and a time
	return string(text)
}

// State is what ConfigMaps and Secrets hold for one pod template now.
type State struct {
	// Key, Seen and Hash are as in Record. No hash: nothing was read, since nothing can
	// have changed, or Unreadable says why it could not be.
	Key, Seen, Hash string
	// Missing says what is required and not there, and who requires it.
	Missing []string
	// Unreadable says what could not be read; then nothing is known of contents.
	Unreadable string

	// uids are those of all sources, and immutable those of the immutable ones, by their
	// names.
	uids, immutable map[string]string
}

// note keeps the UID of a source.
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

// Record is that of a StatefulSet made with this configuration.
func (s State) Record() Record {
	return Record{Key: s.Key, Seen: s.Seen, Hash: s.Hash, Incomplete: len(s.Missing) > 0, Immutable: s.immutable}
}

// RecordAfter returns the record of a StatefulSet made with this configuration while there are
// pods of other records.
func (s State) RecordAfter(earlier ...*Record) Record {
	next := s.Record()
	for _, r := range earlier {
		next.Recreated = append(next.Recreated, s.recreatedSince(r)...)
	}
	slices.Sort(next.Recreated)
	next.Recreated = slices.Compact(next.Recreated)
	return next
}

// recreatedSince returns the immutable sources of a record that were deleted and created again
// since, or before, if pods still have their old contents.
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

// atRest reports whether contents need not be read to know that none changed.
func (r *Record) atRest(key, seen string) bool {
	return r != nil && r.Key == key && r.Seen == seen && !r.Incomplete
}

// Changed reports whether contents are others than those of the record, as far as is
// known.
func (s State) Changed(r *Record) bool {
	if r == nil || s.Hash == "" {
		return false
	}
	if r.Key != s.Key { // hashes of two keys cannot be compared; versions can
		return r.Seen != s.Seen
	}
	return r.Hash != s.Hash
}

// Complete reports whether contents are known, and all that is required is there.
func (s State) Complete() bool { return len(s.Missing) == 0 && s.Unreadable == "" }
