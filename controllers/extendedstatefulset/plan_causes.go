package extendedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Why pods are not Ready, in words for users. The pods of a version that is given up
// are gone by the time that somebody reads it, so the words go into the books with it.

const (
	// causesAtMost is how many different causes are told of at a time.
	causesAtMost = 3
	// causeLength keeps one cause from taking all the room.
	causeLength = 200
)

// lacksPods reports whether a StatefulSet should have pods that are not there.
func (c *child) lacksPods() bool {
	if c.going() {
		return false
	}
	for o := range c.span().ordinals() {
		if c.pods[o] == nil {
			return true
		}
	}
	return false
}

// lacks reports whether a StatefulSet should have the pod of that name, and has it not.
func (c *child) lacks(pod string) bool {
	rest, ours := strings.CutPrefix(pod, c.set.Name+"-")
	ordinal, err := strconv.ParseInt(rest, 10, 32)
	return ours && err == nil && strconv.FormatInt(ordinal, 10) == rest && c.span().has(int32(ordinal)) && c.pods[int32(ordinal)] == nil
}

// unready names the pods of a version that are not Ready, or only between crashes, with what
// is known to keep them from it; of all versions for 0. It is "" if all are.
func (w *world) unready(number int64) string {
	var causes []string
	pods := map[string]*some{}
	add := func(pod, cause string) {
		if pods[cause] == nil {
			causes, pods[cause] = append(causes, cause), &some{}
		}
		pods[cause].add(pod)
	}
	for _, c := range w.children {
		if number != 0 && c.version != number || c.going() {
			continue
		}
		for o := range c.span().ordinals() {
			name, pod := fmt.Sprintf("%s-%d", c.set.Name, o), c.pods[o]
			switch {
			case pod == nil:
				add(name, cmp.Or(w.refusals[name], w.refusals[c.set.Name]))
			case podstate.Terminating(pod):
				add(name, "it is being deleted")
			case !podstate.Ready(pod):
				add(name, w.causeOf(pod, zone{index: c.zone}, o))
			case !w.available(pod): // not for long enough: one that crashes is Ready in between
				if cause := podstate.ExplainCrash(pod); cause != "" {
					add(name, cause)
				}
			}
		}
	}
	if len(causes) == 0 {
		return ""
	}
	// What nothing is known of comes last: mostly it starts.
	slices.SortStableFunc(causes, func(a, b string) int { return map[bool]int{true: 1}[a == ""] - map[bool]int{true: 1}[b == ""] })
	told := make([]string, 0, causesAtMost)
	for _, cause := range causes[:min(len(causes), causesAtMost)] {
		text := pods[cause].String()
		if cause != "" {
			text += " (" + cut(cause, causeLength) + ")"
		}
		told = append(told, text)
	}
	return "; not Ready: " + strings.Join(told, ", ")
}

// hindered is what keeps a version from having its pods Ready: also a pod of another
// that does not end, and has the ordinal.
func (w *world) hindered(number int64) string {
	text := w.unready(number)
	for _, t := range w.tenants {
		if t.version != number && podstate.Terminating(t.pod) {
			return text + fmt.Sprintf("; pod %s is being deleted and has not ended", t.pod.Name)
		}
	}
	return text
}

// causeOf is why a pod is not Ready; "" if nothing is known.
func (w *world) causeOf(pod *corev1.Pod, z zone, ordinal int32) string {
	cause := podstate.Explain(pod)
	if !strings.HasPrefix(cause, corev1.PodReasonUnschedulable) {
		return cause
	}
	for _, t := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
		c := w.claims[claimName(w.set.Name, t.Name, z, ordinal)]
		if c == nil || c.Status.Phase != corev1.ClaimPending {
			continue
		}
		class := "of the default StorageClass"
		if name := c.Spec.StorageClassName; name != nil {
			class = fmt.Sprintf("of StorageClass %q", *name)
		}
		return fmt.Sprintf("%s; claim %s %s is not bound", cause, c.Name, class)
	}
	return cause
}

// some are names of which the first three are told, and how many more there are.
type some struct {
	first []string
	more  int
}

func (s *some) add(name string) {
	if len(s.first) < 3 {
		s.first = append(s.first, name)
	} else {
		s.more++
	}
}

func (s *some) String() string {
	text := strings.Join(s.first, ", ")
	if s.more > 0 {
		text += fmt.Sprintf(" and %d more", s.more)
	}
	return text
}

// Events that a StatefulSet controller writes about its StatefulSet.
const (
	eventFailedCreate = "FailedCreate"
	eventCreated      = "SuccessfulCreate"
)

// refusalsIn finds in the events of a StatefulSet why those of its pods cannot be
// created that are not there: the last that was said of each, unless it was created
// since. The controller has no other place for it.
func refusalsIn(events []corev1.Event, absent func(pod string) bool) map[string]string {
	found, at := map[string]string{}, map[string]time.Time{}
	for i := range events {
		e := &events[i]
		// Create Pod web-v2-0 in StatefulSet web-v2 failed error: …; older ones say create.
		rest, isPods := strings.CutPrefix(e.Message[min(1, len(e.Message)):], "reate Pod ")
		pod, _, _ := strings.Cut(rest, " ")
		switch {
		case e.Reason != eventFailedCreate && e.Reason != eventCreated, !isPods, toldAt(e).Before(at[pod]), !absent(pod):
			continue
		case toldAt(e).Equal(at[pod]) && e.Reason == eventFailedCreate:
			continue // times have whole seconds: it may have been created after
		}
		at[pod] = toldAt(e)
		delete(found, pod)
		if _, why, ok := strings.Cut(e.Message, "failed error: "); ok && e.Reason == eventFailedCreate {
			found[pod] = "it cannot be created: " + strings.TrimPrefix(why, fmt.Sprintf("pods %q is forbidden: ", pod))
		}
	}
	return found
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
