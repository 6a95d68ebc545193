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

// eventsAtMost is the max number of events that are read for an object, and eventsAtOnce the page size.
// Any user may be able to create events, of 1 MiB each.
const (
	eventsAtMost = 500
	eventsAtOnce = 20
)

// Delays for reading events. eventsFirst is the delay after pods are found to be missing, because they
// usually appear quickly. Later reads follow after eventsAgain, which doubles each time up to
// eventsSeldom. No watched object reports that the creation of a pod was rejected.
const (
	eventsFirst  = time.Second
	eventsAgain  = 5 * time.Second
	eventsSeldom = time.Minute
)

// Reasons of events from controllers that create pods.
const (
	EventFailedCreate = failedCreate
	EventCreated      = "SuccessfulCreate"
)

// ReadEvents reads the events of an object in small pages. It keeps only the fields from which causes
// are determined.
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

// RefusalsIn returns why missing pods cannot be created, from the events of their owner. For each pod
// it uses the latest event, unless the pod was created since. The controller that creates the pods
// reports the errors only in events.
func RefusalsIn(events []corev1.Event, absent func(pod string) bool) map[string]string {
	found, at := map[string]string{}, map[string]time.Time{}
	for i := range events {
		e := &events[i]
		pod, isPod := podOfEvent(e)
		if !isPod || isOutdated(e, at[pod]) || !absent(pod) {
			continue
		}
		at[pod] = timeOf(e)
		delete(found, pod)
		if _, why, ok := strings.Cut(e.Message, "failed error: "); ok && e.Reason == EventFailedCreate {
			found[pod] = RefusalText(why)
		}
	}
	return found
}

// RefusalIn returns why the last pod of a ReplicaSet or StatefulSet cannot be created, from the owner's
// events. It returns "" if the pod was created, or if no event contains the cause.
func RefusalIn(events []corev1.Event) string {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		if isOfPods(e) && (last == nil || !isOutdated(e, timeOf(last))) {
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

// forbidden matches the beginning of a rejection by the API server. The name of the pod differs each
// time.
var forbidden = regexp.MustCompile(`^pods "[^"]*" is forbidden: `)

// RefusalText returns a rejection by the API server without the name of the pod.
func RefusalText(text string) string { return forbidden.ReplaceAllString(text, "") }

// podOfEvent returns the pod in an event about its creation, such as "Create Pod web-v2-0 in
// StatefulSet web-v2 failed error: …". Older versions of Kubernetes write "create".
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

// isOutdated reports whether an event is older than the given time. Times have a resolution of one
// second, so a pod may have been created in the same second after it was rejected.
func isOutdated(e *corev1.Event, last time.Time) bool {
	return timeOf(e).Before(last) || (e.Reason == EventFailedCreate && timeOf(e).Equal(last))
}

// timeOf returns the last time of an event.
func timeOf(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Truncate(time.Second)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Truncate(time.Second)
}

// podEventReasons are the reasons of events that contain the cause if containers of a pod cannot be
// created.
var podEventReasons = []string{"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"}

// longID matches the ID of a sandbox that a runtime tries to create. It differs each time.
var longID = regexp.MustCompile(`[0-9a-f]{32,}`)

// InEvents returns why the containers of a pod cannot be created, from the latest event about the pod.
// The pod status does not contain it.
func InEvents(events []corev1.Event) Cause {
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		if slices.Contains(podEventReasons, e.Reason) && (last == nil || !timeOf(e).Before(timeOf(last))) {
			last = e
		}
	}
	if last == nil {
		return Cause{}
	}
	return Cause{last.Reason, longID.ReplaceAllString(last.Message, "…")}
}

// Turns schedules the repeated reading of events, and keeps the last result.
type Turns[T any] struct {
	Due    time.Time     // when to read again; zero if no read is scheduled
	Result T             // the result of the last read
	next   time.Duration // delay after the next read
}

// Begin schedules the first read, unless one is scheduled.
func (t *Turns[T]) Begin(now time.Time) {
	if t.Due.IsZero() {
		t.Due, t.next = now.Add(eventsFirst), eventsAgain
	}
}

// Learn records the result of a read, and schedules the next one.
func (t *Turns[T]) Learn(result T, now time.Time) {
	t.Result, t.Due, t.next = result, now.Add(t.next), min(2*t.next, eventsSeldom)
}
