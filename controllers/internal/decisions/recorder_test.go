package decisions

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
)

func podOf(uid types.UID) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }

func TestRecorder(t *testing.T) {
	sent := events.NewFakeRecorder(100)
	var b Buffer
	for i := range 30 {
		b.Recorder(sent, noon.Add(time.Duration(i)*time.Second)).Eventf(podOf("1"), nil, "Warning", "WriteRefused", "Write", "pod %s", "a")
	}
	want := times(30, after(29, "WriteRefused", "pod a"))
	want.Warning = true
	if got := b.Of("1"); len(sent.Events) != 30 || !slices.Equal(got, []Decision{want}) {
		t.Errorf("%d events were sent, and the buffer has %v, want %v", len(sent.Events), got, want)
	}
	for i := range 30 {
		b.Recorder(nil, noon).Eventf(podOf("1"), nil, "Normal", "Promoted", "Observe", "%d", i)
	}
	if got := b.Of("1"); len(got) != 20 || got[19].Message != "29" {
		t.Errorf("the buffer has %v", got)
	}
	if got := b.Of("2"); got != nil {
		t.Errorf("the buffer of a recreated object has %v", got)
	}
	b.Recorder(nil, noon).Eventf(podOf("2"), nil, "Normal", "Promoted", "Observe", "a")
	if got := b.Of("2"); !slices.Equal(got, []Decision{after(0, "Promoted", "a")}) {
		t.Errorf("the buffer of a recreated object has %v", got)
	}
	if b.Clear(); b.Of("2") != nil {
		t.Error("the buffer was not cleared")
	}
}

func TestPending(t *testing.T) {
	sent := events.NewFakeRecorder(100)
	p := Pending{Now: noon}
	p.Eventf(podOf("1"), nil, "Normal", "Promoted", "Observe", "%s is primary", "a")
	p.Eventf(podOf("1"), nil, "Normal", "Demoted", "Observe", "%s is no longer primary", "b")
	want := []Decision{after(0, "Promoted", "a is primary"), after(0, "Demoted", "b is no longer primary")}
	if got := p.Decisions(); !slices.Equal(got, want) {
		t.Errorf("the decisions are %v, want %v", got, want)
	}
	if len(sent.Events) != 0 {
		t.Error("an event was sent too early")
	}
	p.Send(nil)
	p.Send(sent)
	if one, two := <-sent.Events, <-sent.Events; one != "Normal Promoted a is primary" || two != "Normal Demoted b is no longer primary" {
		t.Errorf("the events are %q and %q", one, two)
	}
}
