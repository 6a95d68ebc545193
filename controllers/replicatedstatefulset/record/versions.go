package record

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Newest returns the highest sequence on record, and its member.
func (r *Record) Newest() (highest uint64, pod string) {
	for _, v := range r.Versions {
		if n := ParseSequence(v); n > highest {
			highest, pod = n, v.Pod
		}
	}
	return highest, pod
}

// ParseSequence returns the number of a recorded sequence. It returns 0 for an invalid one.
func ParseSequence(v v1alpha1.Sequence) uint64 {
	n, err := strconv.ParseUint(v.Sequence, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// noteVersions records the current sequences of members. It skips idle members while other members
// run, because their copies are about to be overwritten. If the sequence of a member decreases, the
// higher number stays on record, because the copy has lost data that it had.
func (r *Record) noteVersions(o *Observed) {
	runs := r.HasGrants() || slices.ContainsFunc(o.Members, func(m ObservedMember) bool { return r.showsSecondary(o, &m) })
	for i := range o.Members {
		m := &o.Members[i]
		if m.Sequence == nil || (runs && r.stateOf(o, m) == Idle) {
			continue
		}
		if n, known := SequenceOf(*m.Sequence); known {
			r.NoteVersion(m.Name, n, m.Sequence.Began)
		}
	}
}

// showsSecondary reports whether a member is secondary, or its state is unknown and it was
// secondary when its state was last known.
func (r *Record) showsSecondary(o *Observed, m *ObservedMember) bool {
	switch r.stateOf(o, m) {
	case Secondary:
		return true
	case Unknown:
		return slices.Contains(o.Set.Status.Members.Secondary, m.Name)
	}
	return false
}

// NoteVersion records the sequence of a member if it is higher than the recorded one, or equal in a
// later epoch.
func (r *Record) NoteVersion(pod string, n uint64, read time.Time) {
	now := v1alpha1.Sequence{
		Pod:      pod,
		Sequence: strconv.FormatUint(n, 10),
		Epoch:    r.Epoch,
		Time:     metav1.NewTime(read.Truncate(time.Second)),
	}
	r.Versions = slices.Clone(r.Versions)
	i := slices.IndexFunc(r.Versions, func(v v1alpha1.Sequence) bool { return v.Pod == pod })
	switch {
	case i < 0:
		r.Versions = append(r.Versions, now)
	case n > ParseSequence(r.Versions[i]):
		r.Versions[i] = now
	case n == ParseSequence(r.Versions[i]) && now.Epoch > r.Versions[i].Epoch && r.grantedBefore(read):
		r.Versions[i] = now
	}
	slices.SortFunc(r.Versions, func(x, y v1alpha1.Sequence) int {
		return cmp.Or(len(x.Pod)-len(y.Pod), strings.Compare(x.Pod, y.Pod))
	})
}

// grantedBefore reports whether all grants are older than then. If so, a sequence that was read
// then belongs to the current epoch.
func (r *Record) grantedBefore(then time.Time) bool {
	return !slices.ContainsFunc(
		r.Granted,
		func(g v1alpha1.Grant) bool { return !then.After(g.Since.Time) },
	)
}
