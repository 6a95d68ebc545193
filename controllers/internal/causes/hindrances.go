package causes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

const (
	// maxHanging is the max number of pods without containers whose events are read in one pass. The
	// other pods usually have the same cause.
	maxHanging = 3
	// maxAlso is the max number of other pods that are listed after the first.
	maxAlso = 3
)

// Hindered is a pod that does not start or is not deleted, and the cause.
type Hindered struct {
	Name string
	Found
}

// Hindrances are the causes that prevent the pods of an object from running.
type Hindrances struct {
	All []Hindered
	// Unread is true if the events that may contain a cause have not been read yet.
	Unread bool
	// Again is the requeue delay; 0 means no requeue.
	Again time.Duration
}

// Add adds the cause of a pod.
func (h *Hindrances) Add(name string, found Found) {
	if found.Known() {
		h.All = append(h.All, Hindered{name, found})
	}
	h.LookAgain(found.Again)
}

// LookAgain shortens the requeue delay to the given time. A time of 0 has no effect.
func (h *Hindrances) LookAgain(after time.Duration) {
	if after > 0 && (h.Again == 0 || after < h.Again) {
		h.Again = after
	}
}

// Stopped returns the pods that do not run or are not deleted.
func (h *Hindrances) Stopped() []Hindered {
	return slices.DeleteFunc(slices.Clone(h.All), func(one Hindered) bool { return one.RunsUnready() })
}

// Lasting returns the pods whose causes have lasted for long. Those that require manual intervention
// come first.
func Lasting(all []Hindered) []Hindered {
	found := slices.DeleteFunc(slices.Clone(all), func(h Hindered) bool { return !h.Lasts })
	slices.SortStableFunc(found, func(a, b Hindered) int { return a.rank() - b.rank() })
	return found
}

// rank returns the position of a pod among others: 0 for those that require manual intervention.
func (h Hindered) rank() int {
	if h.NeedsPerson() {
		return 0
	}
	return 1
}

// TellOf returns a message about the first pod, and the names of others. what describes a pod, such as
// "member".
func TellOf(what, namespace string, found []Hindered) string {
	first := found[0]
	text := first.Tell(what+" "+first.Name, namespace, first.Name)
	if len(found) == 1 {
		return text
	}
	var others []string
	for _, h := range found[1:min(len(found), 1+maxAlso)] {
		others = append(others, fmt.Sprintf("%s (%s)", h.Name, h.Word))
	}
	text += "; also: " + strings.Join(others, ", ")
	if more := len(found) - 1 - maxAlso; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Notice returns a notice about the hindered pods once the cause of one of them has lasted for long. It
// keeps the notice of the present condition until the cause is known to be resolved. Otherwise it
// returns an empty notice. what describes a pod, as in TellOf.
func (h *Hindrances) Notice(hindered []Hindered, reason, what, namespace string, present *metav1.Condition) engine.Notice {
	found := Lasting(hindered)
	reported := present != nil && present.Status == metav1.ConditionTrue && present.Reason == reason
	switch {
	case len(found) > 0:
		return engine.Notice{Reason: reason, Message: TellOf(what, namespace, found)}
	case reported && (h.Unread || len(hindered) > 0):
		return engine.Notice{Reason: present.Reason, Message: present.Message}
	}
	return engine.Notice{}
}

// Known is the in-memory state about the hindered pods of one object. Read uses and updates it in each
// pass.
type Known struct {
	trail  Trail
	events Turns[map[types.UID]Cause]
}

// Named is a pod, or the name of a pod that will be created. In is the name of the pod that it
// replaces, or "". Refused is the cause if it cannot be created.
type Named struct {
	Name, In string
	Pod      *corev1.Pod
	Refused  Cause
}

// Read returns the causes that prevent pods from running. ours are the finalizers that the operator
// itself removes. Errors of reading events are only logged, because no decision depends on events.
func (k *Known) Read(ctx context.Context, live client.Reader, now time.Time, pods []Named, ours ...string) Hindrances {
	var h Hindrances
	if k.trail == nil {
		k.trail = Trail{}
	}
	eventCauses := k.readEvents(ctx, live, now, pods, &h)
	wanted := map[string]bool{}
	for _, n := range pods {
		wanted[n.Name] = true
		if before, replaced := k.trail[n.In]; replaced && n.In != "" {
			if _, has := k.trail[n.Name]; !has {
				k.trail[n.Name] = before
			}
		}
		h.Add(n.Name, k.follow(n, eventCauses, now, ours))
	}
	k.trail.Forget(func(name string) bool { return wanted[name] })
	return h
}

// follow returns the cause of one pod. eventCauses are the causes in events, by pod UID.
func (k *Known) follow(n Named, eventCauses map[types.UID]Cause, now time.Time, ours []string) Found {
	if n.Pod == nil {
		return k.trail.Find(n.Name, nil, n.Refused, now)
	}
	return k.trail.Find(n.Name, n.Pod, eventCauses[n.Pod.UID], now, ours...)
}

// readEvents returns the causes in the events of pods that have had no containers for long.
func (k *Known) readEvents(ctx context.Context, live client.Reader, now time.Time, pods []Named, h *Hindrances) map[types.UID]Cause {
	var existing []*corev1.Pod
	for _, n := range pods {
		if n.Pod != nil {
			existing = append(existing, n.Pod)
		}
	}
	hanging := h.Hanging(existing, now)
	if len(hanging) == 0 {
		k.events = Turns[map[types.UID]Cause]{}
		return nil
	}
	if k.events.Begin(now); !now.Before(k.events.Due) {
		k.events.Learn(ReadPodEvents(ctx, live, hanging), now)
	}
	h.Unread = k.events.Result == nil
	h.LookAgain(k.events.Due.Sub(now))
	return k.events.Result
}

// Hanging returns the first pods that have had no containers for so long that their events should be
// read. It sets the requeue delay for the others.
func (h *Hindrances) Hanging(pods []*corev1.Pod, now time.Time) (hanging []*corev1.Pod) {
	for _, pod := range pods {
		hangs, wait := Hangs(pod, now)
		if hangs && len(hanging) < maxHanging {
			hanging = append(hanging, pod)
		}
		h.LookAgain(wait)
	}
	return hanging
}

// ReadPodEvents returns the causes in the events of pods. It logs errors.
func ReadPodEvents(ctx context.Context, live client.Reader, pods []*corev1.Pod) map[types.UID]Cause {
	found := map[types.UID]Cause{}
	for _, pod := range pods {
		events, err := ReadEvents(ctx, live, pod.Namespace, "Pod", pod.UID)
		LogUnread(ctx, err)
		found[pod.UID] = InEvents(events)
	}
	return found
}

// LogUnread logs an error of reading events. No decision depends on events, so there is no retry.
func LogUnread(ctx context.Context, err error) {
	if err != nil {
		log.FromContext(ctx).Info("Failed to read the events of a pod that does not start", "error", err.Error())
	}
}
