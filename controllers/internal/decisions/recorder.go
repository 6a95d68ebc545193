package decisions

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Buffer has the last decisions about an object that its status does not have yet. It is lost when the
// process ends. The zero value is ready to use. It has the same limits as the list in the status.
type Buffer struct {
	// of is the UID of the object. A recreated object starts with an empty buffer.
	of   types.UID
	list []Decision
}

// Of returns the decisions about the object with that UID.
func (b *Buffer) Of(uid types.UID) []Decision {
	if b.of != uid {
		return nil
	}
	return b.list
}

// Clear removes all decisions, after they were written.
func (b *Buffer) Clear() { b.list = nil }

// Recorder returns a recorder that adds each event to the buffer, and forwards it to another recorder
// unless that is nil.
func (b *Buffer) Recorder(to events.EventRecorder, now time.Time) events.EventRecorder {
	return &recorder{b, to, now}
}

// recorder adds events to a buffer, and forwards them.
type recorder struct {
	buffer *Buffer
	to     events.EventRecorder
	now    time.Time
}

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(regarding, related runtime.Object, kind, reason, act, note string, args ...any) {
	object, isObject := regarding.(client.Object)
	if isObject {
		uid := object.GetUID()
		r.buffer.of, r.buffer.list = uid, Append(r.buffer.Of(uid), decisionOf(r.now, kind, reason, note, args))
	}
	if r.to != nil {
		r.to.Eventf(regarding, related, kind, reason, act, note, args...)
	}
}

// decisionOf returns the decision that an event reports.
func decisionOf(now time.Time, kind, reason, note string, args []any) Decision {
	return Decision{Time: metav1.NewTime(now), Reason: reason, Message: fmt.Sprintf(note, args...), Warning: kind == corev1.EventTypeWarning}
}

// Pending is a recorder that keeps the events about a status until it is written.
type Pending struct {
	// Now is the time of the decisions.
	Now  time.Time
	list []Decision
	send []func(to events.EventRecorder)
}

// Eventf implements events.EventRecorder.
func (p *Pending) Eventf(regarding, related runtime.Object, kind, reason, act, note string, args ...any) {
	p.list = append(p.list, decisionOf(p.Now, kind, reason, note, args))
	p.send = append(p.send, func(to events.EventRecorder) { to.Eventf(regarding, related, kind, reason, act, note, args...) })
}

// Decisions returns the decisions that the events report.
func (p *Pending) Decisions() []Decision { return p.list }

// Send sends the events to a recorder, unless that is nil.
func (p *Pending) Send(to events.EventRecorder) {
	if to == nil {
		return
	}
	for _, send := range p.send {
		send(to)
	}
}
