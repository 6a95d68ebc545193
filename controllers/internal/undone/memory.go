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

// A write that was undone is tried again after firstPause, and after twice as long each time
// that it is undone again.
const (
	firstPause = 10 * time.Second
	maxPause   = 10 * time.Minute
)

// key is a field of a child.
type key struct {
	child types.UID
	path  string
}

// entry is what is known of a field that was changed back.
type entry struct {
	kind, name string
	field      Field
	times      int
	until      time.Time
}

// Memory knows the writes of one object that were undone. The zero value is ready for use.
type Memory struct {
	generation int64
	fields     map[key]entry
}

// Learn notes which of the writes were undone. It returns those of which nothing was known.
func (m *Memory) Learn(outcomes []action.Outcome, now time.Time) (news []action.Outcome) {
	for k, e := range m.fields {
		if e.until.Add(maxPause).Before(now) { // nothing wants it any more
			delete(m.fields, k)
		}
	}
	for _, o := range outcomes {
		if isPatch(o.Action) && o.Answer != nil && m.learn(o, now) {
			news = append(news, o)
		}
	}
	return news
}

// learn notes one write, and reports whether it is the first one that was undone.
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
		known := m.fields[k]
		isNew = isNew || known.field.Wanted != f.Wanted || known.times == 0
		if m.fields == nil {
			m.fields = map[key]entry{}
		}
		m.fields[k] = entry{
			kind: o.Kind(), name: o.Object.GetName(), field: f,
			times: known.times + 1, until: now.Add(pause(f, known.times)),
		}
	}
	return isNew
}

// pause returns how long a write waits that was undone that many times before.
func pause(f Field, times int) time.Duration {
	if isAddition(f) {
		return maxPause
	}
	return min(firstPause<<min(times, 10), maxPause)
}

// isAddition reports whether a field is one that others add to what the operator writes, and
// that it does not need to be gone.
func isAddition(f Field) bool { return f.Wanted == "" && !strings.HasPrefix(f.Path, "metadata.") }

// isPatch reports whether an action changes fields of a child.
func isPatch(a action.Action) bool { return a.Verb == action.Patch || a.Verb == action.Resize }

// Held returns which writes have to wait. What is known of an earlier spec is dropped.
func (m *Memory) Held(generation int64, now time.Time) Held {
	if m.generation != generation {
		*m = Memory{generation: generation}
	}
	return Held{fields: maps.Clone(m.fields), now: now}
}

// Held is the writes that wait, as one pass sees them.
type Held struct {
	fields map[key]entry
	now    time.Time
}

// Pause returns how long a chain has to wait because all patches in it were undone; 0 if it may
// be run. A chain that does more than patch objects never waits: it is a step of something
// larger, which decides itself whether to go on.
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

// pauseOf returns how long a patch of these fields has to wait: until the last of them may be
// tried again. It does not wait if one of them is new, or has another value by now.
func (h Held) pauseOf(child types.UID, fields []Field) time.Duration {
	var longest time.Duration
	for _, f := range fields {
		e, known := h.fields[key{child, f.Path}]
		if !known || e.field != f || !e.until.After(h.now) {
			return 0
		}
		longest = max(longest, e.until.Sub(h.now))
	}
	return longest
}

// purpose returns the fields for which a patch is made. The defaults that a new template
// leaves out do not count beside what it sets, nor do annotations, which are notes about it.
func purpose(fields []Field) []Field {
	for _, counts := range []func(Field) bool{isContent, isSet} {
		if some := slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return !counts(f) }); len(some) > 0 {
			return some
		}
	}
	return fields
}

// isSet reports whether a field of the metadata changes, or another one gets a value.
func isSet(f Field) bool { return f.Wanted != "" || strings.HasPrefix(f.Path, "metadata.") }

func isContent(f Field) bool { return isSet(f) && !strings.HasPrefix(f.Path, "metadata.annotations.") }

// Message names the fields that are changed back, for people; "" if there are none. What
// others only add is left out, and so are the images of containers: a policy that takes them
// from a mirror is no fault.
func (h Held) Message() string {
	undone := h.told()
	slices.SortFunc(undone, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.field.Path, b.field.Path))
	})
	fields := make([]string, 0, len(undone))
	for _, e := range undone {
		fields = append(fields, fmt.Sprintf("%s %s: %s", e.kind, e.name, e.field))
	}
	return Explain(fields, retried)
}

// Touches reports whether fields of a child of that kind are changed back.
func (h Held) Touches(kind string) bool {
	return slices.ContainsFunc(h.told(), func(e entry) bool { return e.kind == kind })
}

// told returns the fields that people are told of.
func (h Held) told() (undone []entry) {
	for _, e := range h.fields {
		if e.until.After(h.now) && !isAddition(e.field) && !isImage(e.field.Path) {
			undone = append(undone, e)
		}
	}
	return undone
}

// maxFields is how many fields a message names.
const maxFields = 3

// retried is what becomes of a write that was undone.
const retried = "the write is tried again within 10 minutes"

// Explain returns the message about fields that an admission webhook or policy changes back, and
// what becomes of the write.
func Explain(fields []string, next string) string {
	if len(fields) == 0 {
		return ""
	}
	text := strings.Join(fields[:min(len(fields), maxFields)], "; ")
	if more := len(fields) - maxFields; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "an admission webhook or policy of the cluster changes what the operator writes: " + text +
		"; exempt the object from it (`kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies` lists them), or change the spec to agree with it; " + next
}

// Unlike describes the fields of a child that are not as they were written, but for images.
func Unlike(child string, have, want any) (fields []string) {
	for _, f := range Missing(have, want) {
		if !isImage(f.Path) {
			fields = append(fields, child+": "+f.String())
		}
	}
	return fields
}

// About returns what an event says of a write that was undone.
func About(o action.Outcome) string {
	var fields []string
	for _, f := range Of(o.From, o.Object, o.Answer) {
		fields = append(fields, fmt.Sprintf("%s %s: %s", o.Kind(), o.Object.GetName(), f))
	}
	return Explain(fields, retried)
}
