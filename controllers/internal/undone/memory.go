package undone

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// An undone write is retried after firstPause. The delay doubles each time that it is undone again.
const (
	firstPause = 10 * time.Second
	maxPause   = 10 * time.Minute
)

// key identifies a field of a child.
type key struct {
	child types.UID
	path  string
}

// entry describes a field that was changed back.
type entry struct {
	kind, name string // of the child
	field      Field
	times      int       // how often it was changed back in a row
	until      time.Time // when the write may be retried
}

// Memory records the undone writes of one object. The zero value is ready to use.
type Memory struct {
	generation int64
	fields     map[key]entry
}

// Learn records which of the writes were undone. It returns the writes that were undone for the first
// time.
func (m *Memory) Learn(outcomes []action.Outcome, now time.Time) (firstTime []action.Outcome) {
	for k, e := range m.fields {
		if e.until.Add(maxPause).Before(now) { // no longer wanted
			delete(m.fields, k)
		}
	}
	for _, o := range outcomes {
		if isPatch(o.Action) && o.Answer != nil && m.learn(o, now) {
			firstTime = append(firstTime, o)
		}
	}
	return firstTime
}

// learn records one write. It reports whether the write was undone for the first time.
func (m *Memory) learn(o action.Outcome, now time.Time) (isNew bool) {
	uid, undone := o.From.GetUID(), Of(o.From, o.Object, o.Answer)
	if len(m.fields) > 0 {
		for _, sent := range changed(o.From, o.Object) {
			if !slices.ContainsFunc(undone, func(f Field) bool { return f.Path == sent.Path }) {
				delete(m.fields, key{uid, sent.Path})
			}
		}
	}
	for _, f := range undone {
		k := key{uid, f.Path}
		before := m.fields[k]
		isNew = isNew || before.field.Wanted != f.Wanted || before.times == 0
		if m.fields == nil {
			m.fields = map[key]entry{}
		}
		m.fields[k] = entry{
			kind: o.Kind(), name: o.Object.GetName(), field: f,
			times: before.times + 1, until: now.Add(pause(f, before.times)),
		}
	}
	return isNew
}

// pause returns the delay of a write that was undone the given number of times before.
func pause(f Field, times int) time.Duration {
	if isAddition(f) {
		return maxPause
	}
	return min(firstPause<<min(times, 10), maxPause)
}

// isAddition reports whether a field was added by others, and the operator does not require its
// removal.
func isAddition(f Field) bool { return f.Wanted == "" && !strings.HasPrefix(f.Path, "metadata.") }

// isPatch reports whether an action changes fields of a child.
func isPatch(a action.Action) bool { return a.Verb == action.Patch || a.Verb == action.Resize }

// Held returns the writes that must wait. It drops the records of earlier generations of the spec.
func (m *Memory) Held(generation int64, now time.Time) Held {
	if m.generation != generation {
		*m = Memory{generation: generation}
	}
	return Held{fields: maps.Clone(m.fields), now: now}
}

// Held is a snapshot of the waiting writes for one pass.
type Held struct {
	fields map[key]entry
	now    time.Time
}

// Pause returns how long a chain must wait because all of its patches were undone; 0 if it can run. A
// chain with other actions than patches never waits: it is part of a larger task that has its own
// rules.
func (h Held) Pause(chain action.Chain) time.Duration {
	if len(h.fields) == 0 || !slices.ContainsFunc(chain, isPatch) {
		return 0
	}
	var longest time.Duration
	for _, a := range chain {
		if !isPatch(a) {
			return 0
		}
		fields := purpose(changed(a.From, a.Object))
		pause := h.pauseOf(a.From.GetUID(), fields)
		if pause == 0 && len(fields) > 0 {
			return 0
		}
		longest = max(longest, pause)
	}
	return longest
}

// pauseOf returns how long a patch of the given fields must wait: until the last of them may be
// retried. It returns 0 if one of the fields is new or has a different value.
func (h Held) pauseOf(child types.UID, fields []Field) time.Duration {
	var longest time.Duration
	for _, f := range fields {
		e, recorded := h.fields[key{child, f.Path}]
		if !recorded || e.field != f || !e.until.After(h.now) {
			return 0
		}
		longest = max(longest, e.until.Sub(h.now))
	}
	return longest
}

// purpose returns the fields for which a patch is made. If it sets fields, those that it only removes
// are ignored, such as defaults that a new template omits. If it sets other fields too, annotations are
// ignored, because they only describe the change.
func purpose(fields []Field) []Field {
	for _, counts := range []func(Field) bool{isContent, isSet} {
		if some := slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return !counts(f) }); len(some) > 0 {
			return some
		}
	}
	return fields
}

// isSet reports whether the field is set, or is in the metadata.
func isSet(f Field) bool { return f.Wanted != "" || strings.HasPrefix(f.Path, "metadata.") }

// isContent reports whether the field is set and is not an annotation.
func isContent(f Field) bool { return isSet(f) && !strings.HasPrefix(f.Path, "metadata.annotations.") }

// Message describes the fields that are changed back; "" if there are none. It omits fields that others
// only add. It also omits container images, because a policy that uses a mirror is not a fault.
func (h Held) Message() string {
	undone := h.reported()
	slices.SortFunc(undone, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.field.Path, b.field.Path))
	})
	fields := make([]string, 0, len(undone))
	for _, e := range undone {
		fields = append(fields, fmt.Sprintf("%s %s: %s", e.kind, e.name, e.field))
	}
	return Explain(fields, retried)
}

// Touches reports whether fields of a child of the given kind are changed back.
func (h Held) Touches(kind string) bool {
	return slices.ContainsFunc(h.reported(), func(e entry) bool { return e.kind == kind })
}

// reported returns the fields that are reported to users.
func (h Held) reported() (undone []entry) {
	for _, e := range h.fields {
		if e.until.After(h.now) && !isAddition(e.field) && !isImage(e.field.Path) {
			undone = append(undone, e)
		}
	}
	return undone
}

// maxFields is the max number of fields in a message.
const maxFields = 3

// retried is the end of the message for an undone write.
const retried = "the write is retried within 10 minutes"

// Explain returns the message about fields that an admission webhook or policy changes back. next
// describes what happens to the write.
func Explain(fields []string, next string) string {
	if len(fields) == 0 {
		return ""
	}
	text := strings.Join(fields[:min(len(fields), maxFields)], "; ")
	if more := len(fields) - maxFields; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "an admission webhook or policy of the cluster changes the objects that the operator writes: " + text +
		"; exempt the object from it (`kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies` lists them), or change the spec to match; " + next
}

// Unlike describes the fields of a child that differ from the written ones, except images.
func Unlike(child string, have, want any) (fields []string) {
	for _, f := range Missing(have, want) {
		if !isImage(f.Path) {
			fields = append(fields, child+": "+f.String())
		}
	}
	return fields
}

// About returns the event message for an undone write.
func About(o action.Outcome) string {
	var fields []string
	for _, f := range Of(o.From, o.Object, o.Answer) {
		fields = append(fields, fmt.Sprintf("%s %s: %s", o.Kind(), o.Object.GetName(), f))
	}
	return Explain(fields, retried)
}
