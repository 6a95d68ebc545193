package causes

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// eventsAtMost is how many events of an object are read, and eventsAtOnce how many at one
// time: anyone may write some, each of a megabyte.
const (
	eventsAtMost = 500
	eventsAtOnce = 20
)

// When events are read: eventsFirst after pods are found to be missing, since mostly they
// come at once, and again after eventsAgain, each time after twice as long up to
// eventsSeldom. Nothing that is watched says that a pod was refused.
const (
	eventsFirst  = time.Second
	eventsAgain  = 5 * time.Second
	eventsSeldom = time.Minute
)

// Events are the reasons of events of those who create pods for others.
const (
	EventFailedCreate = failedCreate
	EventCreated      = "SuccessfulCreate"
)

// ReadEvents reads the events of an object, few at one time, and keeps of each what causes
// are found in.
func ReadEvents(ctx context.Context, live client.Reader, namespace, kind string, uid types.UID) ([]corev1.Event, error) {
	of := client.MatchingFields{"involvedObject.kind": kind, "involvedObject.uid": string(uid)}
	var kept []corev1.Event
	for next := ""; len(kept) < eventsAtMost; {
		var page corev1.EventList
		if err := live.List(ctx, &page, client.InNamespace(namespace), of, client.Limit(eventsAtOnce), client.Continue(next)); err != nil {
			return kept, err
		}
		for i := range page.Items {
			e := &page.Items[i]
			kept = append(kept, corev1.Event{
				Reason: e.Reason, Message: excerpt.Message(e.Message), Series: e.Series, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime,
			})
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	return kept, nil
}

// RefusalsIn finds in the events of an object why those of its pods cannot be created that
// are not there: the last that was said of each, unless it was created since. The controller
// that creates them has no other place for it.
func RefusalsIn(events []corev1.Event, absent func(pod string) bool) map[string]string {
	found, at := map[string]string{}, map[string]time.Time{}
	for i := range events {
		e := &events[i]
		pod, isPod := podOfEvent(e)
		if !isPod || isOutdated(e, at[pod]) || !absent(pod) {
			continue
		}
		at[pod] = toldAt(e)
		delete(found, pod)
		if _, why, ok := strings.Cut(e.Message, "failed error: "); ok && e.Reason == EventFailedCreate {
			found[pod] = RefusalText(why)
		}
	}
	return found
}

// RefusalIn returns why the last pod of a ReplicaSet or StatefulSet cannot be created, from
// the events of its owner; "" if it was created, or no event has the cause.
func RefusalIn(events []corev1.Event) string {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		if isOfPods(e) && (last == nil || !isOutdated(e, toldAt(last))) {
			last = e
		}
	}
	if last == nil || last.Reason != EventFailedCreate {
		return ""
	}
	for _, before := range []string{"failed error: ", "Error creating: "} {
		if _, why, ok := strings.Cut(last.Message, before); ok {
			return RefusalText(why)
		}
	}
	return RefusalText(last.Message)
}

// forbidden is the beginning of a refusal by the API server. The name of the pod differs each time.
var forbidden = regexp.MustCompile(`^pods "[^"]*" is forbidden: `)

// RefusalText returns a refusal by the API server without the name of the pod.
func RefusalText(text string) string { return forbidden.ReplaceAllString(text, "") }

// podOfEvent is the pod that was created or refused by what an event says, as
// "Create Pod web-v2-0 in StatefulSet web-v2 failed error: …"; older ones say create.
func podOfEvent(e *corev1.Event) (pod string, ok bool) {
	if !isOfPods(e) {
		return "", false
	}
	rest, ok := strings.CutPrefix(e.Message[min(1, len(e.Message)):], "reate Pod ")
	pod, _, _ = strings.Cut(rest, " ")
	return pod, ok
}

// isOfPods reports whether an event is about the creation of a pod.
func isOfPods(e *corev1.Event) bool {
	return e.Reason == EventFailedCreate || e.Reason == EventCreated
}

// isOutdated reports whether an event is older than one of that time. Times have whole seconds:
// a pod may have been created after it was refused.
func isOutdated(e *corev1.Event, last time.Time) bool {
	return toldAt(e).Before(last) || (e.Reason == EventFailedCreate && toldAt(e).Equal(last))
}

// toldAt is when an event was told last.
func toldAt(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Truncate(time.Second)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Truncate(time.Second)
}

// inEvents are the reasons of events about a pod whose containers are not created, and say
// why.
var inEvents = []string{"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"}

// longID is what a runtime calls a sandbox that it tries to make: another each time.
var longID = regexp.MustCompile(`[0-9a-f]{32,}`)

// InEvents returns why the containers of a pod are not created, from events about it: what
// was said last. The status of the pod has no place for it.
func InEvents(events []corev1.Event) Cause {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		if slices.Contains(inEvents, e.Reason) && (last == nil || !toldAt(e).Before(toldAt(last))) {
			last = e
		}
	}
	if last == nil {
		return Cause{}
	}
	return Cause{last.Reason, longID.ReplaceAllString(last.Message, "…")}
}

// Turns are when events are read, and what they said last.
type Turns[T any] struct {
	Due  time.Time // zero while nothing is asked about
	Said T
	next time.Duration
}

// Begin notes that there is something to ask about.
func (t *Turns[T]) Begin(now time.Time) {
	if t.Due.IsZero() {
		t.Due, t.next = now.Add(eventsFirst), eventsAgain
	}
}

// Learn takes what the events said.
func (t *Turns[T]) Learn(said T, now time.Time) {
	t.Said, t.Due, t.next = said, now.Add(t.next), min(2*t.next, eventsSeldom)
}
