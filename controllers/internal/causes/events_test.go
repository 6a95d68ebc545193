package causes

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// V6: missing pods are explained by events of the StatefulSet controller.
func TestV6EventsSayWhyPodsAreNotThere(t *testing.T) {
	tells := func(reason, message string, at time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(noon.Add(at))}
	}
	refused := func(at time.Duration, why string) corev1.Event {
		return tells("FailedCreate", `Create Pod db-v1-0 in StatefulSet db-v1 failed error: pods "db-v1-0" is forbidden: `+why, at)
	}
	created := func(at time.Duration) corev1.Event {
		return tells("SuccessfulCreate", "Create Pod db-v1-0 in StatefulSet db-v1 successful", at)
	}
	for _, row := range []struct {
		name   string
		events []corev1.Event
		want   string
	}{
		{"no event", nil, ""},
		{"the create was refused", []corev1.Event{refused(0, "exceeded quota: a")}, "exceeded quota: a"},
		{"the last event counts", []corev1.Event{refused(time.Minute, "exceeded quota: b"), refused(0, "exceeded quota: a")}, "exceeded quota: b"},
		{"the pod was created later", []corev1.Event{refused(0, "a"), created(time.Minute)}, ""},
		{"the pod was created later, in the same second", []corev1.Event{created(0), refused(0, "a")}, ""},
		{"the pod was created earlier", []corev1.Event{created(0), refused(time.Minute, "a")}, "a"},
		{"another pod was refused", []corev1.Event{tells("FailedCreate", "create Pod db-v1-00 in StatefulSet db-v1 failed error: a", 0)}, ""},
		{"a webhook refused the pod", []corev1.Event{tells("FailedCreate", `create Pod db-v1-0 in StatefulSet db-v1 failed error: admission webhook "x" denied the request: no`, 0)},
			`admission webhook "x" denied the request: no`},
		{"the pod was deleted", []corev1.Event{tells("SuccessfulDelete", "delete Pod db-v1-0 in StatefulSet db-v1 successful", 0)}, ""},
		{"an event of the events.k8s.io API", []corev1.Event{{Reason: "FailedCreate", Message: "create Pod db-v1-0 in StatefulSet db-v1 failed error: a",
			EventTime: metav1.NewMicroTime(noon), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon.Add(time.Hour))}}, created(time.Minute)},
			"a"},
	} {
		if got := RefusalsIn(row.events, func(pod string) bool { return pod == "db-v1-0" || pod == "db-v1-1" })["db-v1-0"]; got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// FuzzRefusals parses arbitrary events, because users may be able to create events. Results must be
// only about missing pods.
func FuzzRefusals(f *testing.F) {
	f.Add(`Create Pod db-v1-0 in StatefulSet db-v1 failed error: pods "db-v1-0" is forbidden: quota`, EventFailedCreate)
	f.Add("create Pod ", EventFailedCreate)
	f.Add("", EventCreated)
	f.Add("\xc3create Pod failed error: ", EventFailedCreate)
	f.Fuzz(func(t *testing.T, message, reason string) {
		pods := []string{"db-v1-0", "db-v1-1", "db-v1-2"}
		for pod := range RefusalsIn([]corev1.Event{{Message: message, Reason: reason}}, func(pod string) bool { return slices.Contains(pods, pod) }) {
			if reason != EventFailedCreate || !slices.Contains(pods, pod) {
				t.Errorf("%s %q is attributed to pod %s", reason, message, pod)
			}
		}
	})
}

// The interval of reads doubles each time.
func TestTurns(t *testing.T) {
	var turns Turns[string]
	turns.Begin(noon)
	if turns.Due.Sub(noon) != eventsFirst {
		t.Errorf("first read after %v", turns.Due.Sub(noon))
	}
	before := eventsFirst
	for now := turns.Due; before < eventsSeldom; now = turns.Due {
		turns.Learn("", now)
		pause := turns.Due.Sub(now)
		if pause <= before {
			t.Fatalf("after %v the next read is after %v", before, pause)
		}
		before = pause
	}
}

// W7: the last pod of an owner counts, and its name is removed.
func TestW7WhyAnOwnerCannotCreateItsPod(t *testing.T) {
	event := func(after time.Duration, reason, text string) corev1.Event {
		return corev1.Event{Reason: reason, Message: text, LastTimestamp: at(after)}
	}
	quota := event(2*time.Second, EventFailedCreate, `Error creating: pods "web-1-x7f2k" is forbidden: exceeded quota: small`)
	for _, r := range []struct {
		name   string
		events []corev1.Event
		want   string
	}{
		{"no event for the owner", nil, ""},
		{"an event of a ReplicaSet", []corev1.Event{quota}, "exceeded quota: small"},
		{"an event of a StatefulSet", []corev1.Event{event(0, EventFailedCreate, `create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota: small`)}, "exceeded quota: small"},
		{"the latest event counts", []corev1.Event{quota, event(time.Second, EventFailedCreate, "Error creating: an older reason"), event(time.Hour, "Other", "x")}, "exceeded quota: small"},
		{"the pod was created later", []corev1.Event{event(2*time.Second, EventCreated, "Created pod: web-1-abcde"), quota}, ""},
		{"the pod was created earlier", []corev1.Event{quota, event(time.Second, EventCreated, "Created pod: web-1-abcde")}, "exceeded quota: small"},
	} {
		if got := RefusalIn(r.events); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}
