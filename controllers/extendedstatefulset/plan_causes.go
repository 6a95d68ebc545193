package extendedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Why pods are not Ready, in words for users. The pods of a version that is given up
// are gone by the time that a user reads it, so the words go into the record with it.

const (
	// causesAtMost is how many different causes are told of at a time.
	causesAtMost = 3
	// causeLength keeps one cause from taking all the room.
	causeLength = 200
)

// causes are why pods are not Ready, with the pods of each, in the order in which they
// were found.
type causes struct {
	all  []string
	pods map[string]*some
}

func (c *causes) add(pod, cause string) {
	if c.pods[cause] == nil {
		if c.pods == nil {
			c.pods = map[string]*some{}
		}
		c.all, c.pods[cause] = append(c.all, cause), &some{}
	}
	c.pods[cause].add(pod)
}

// String tells of the first causes, and last of pods of which nothing is known: mostly
// they start.
func (c *causes) String() string {
	if len(c.all) == 0 {
		return ""
	}
	known := slices.DeleteFunc(slices.Clone(c.all), func(cause string) bool { return cause == "" })
	told := make([]string, 0, causesAtMost)
	for _, cause := range known[:min(len(known), causesAtMost)] {
		told = append(told, c.pods[cause].String()+" ("+excerpt.Of(cause, causeLength)+")")
	}
	if unknown := c.pods[""]; unknown != nil && len(told) < causesAtMost {
		told = append(told, unknown.String())
	}
	return "; not Ready: " + strings.Join(told, ", ")
}

// unready names the pods of a version that are not Ready, or only between crashes, with what
// is known to keep them from it; of all versions for 0. It is "" if all are.
func unready(w *world, number int64) string {
	var found causes
	for _, c := range w.children {
		if c.terminating() || (number != 0 && c.version != number) {
			continue
		}
		for o := range c.span().ordinals() {
			if cause, unready := causeOn(w, c, o); unready {
				found.add(fmt.Sprintf("%s-%d", c.set.Name, o), cause)
			}
		}
	}
	return found.String()
}

// causeOn reports whether the pod of an ordinal is not Ready, or only between crashes, and
// why; "" if nothing is known.
func causeOn(w *world, c *child, ordinal int32) (cause string, unready bool) {
	pod := c.pods[ordinal]
	switch {
	case pod == nil:
		name := fmt.Sprintf("%s-%d", c.set.Name, ordinal)
		return cmp.Or(w.refusals[name], w.refusals[c.set.Name]), true
	case podstate.Terminating(pod):
		return "it is being deleted", true
	case !podstate.Ready(pod):
		return causeOf(w, pod, zone{index: c.zone}, ordinal), true
	case w.clock().available(pod):
		return "", false
	}
	cause = podstate.ExplainCrash(pod) // it is Ready, but not for long enough
	return cause, cause != ""
}

// hindered is what keeps a version from having its pods Ready: also what the API server
// refuses the operator, and a pod of another version that does not end, and has the
// ordinal.
func hindered(w *world, number int64) string {
	text := unready(w, number) + refusedUs(w)
	for _, t := range w.pods {
		if t.version != number && podstate.Terminating(t.pod) {
			return text + fmt.Sprintf("; pod %s is being deleted and has not ended", t.pod.Name)
		}
	}
	return text
}

// refusedUs is what the API server refuses the operator; "" if nothing. A StatefulSet or
// a Job that cannot be made has no pods that could say why.
func refusedUs(w *world) string {
	if w.refused == "" {
		return ""
	}
	return "; the API server refuses what has to be written: " + excerpt.Of(w.refused, causeLength)
}

// causeOf is why a pod is not Ready; "" if nothing is known.
func causeOf(w *world, pod *corev1.Pod, z zone, ordinal int32) string {
	cause := podstate.Explain(pod)
	if podstate.Hindrance(pod) != corev1.PodReasonUnschedulable {
		return cause
	}
	for _, t := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
		c := w.claims[claimName(w.set.Name, t.Name, z, ordinal)]
		if c == nil || c.Status.Phase != corev1.ClaimPending {
			continue
		}
		return fmt.Sprintf("%s; claim %s %s is not bound", cause, c.Name, classOf(c))
	}
	return cause
}

// classOf says which StorageClass a claim asks for.
func classOf(c *corev1.PersistentVolumeClaim) string {
	if name := c.Spec.StorageClassName; name != nil {
		return fmt.Sprintf("of StorageClass %q", *name)
	}
	return "of the default StorageClass"
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
		pod, isPod := podOfEvent(e)
		refused := e.Reason == eventFailedCreate
		// Times have whole seconds: it may have been created after it was refused.
		outdated := toldAt(e).Before(at[pod]) || (refused && toldAt(e).Equal(at[pod]))
		if !isPod || outdated || !absent(pod) {
			continue
		}
		at[pod] = toldAt(e)
		delete(found, pod)
		if _, why, ok := strings.Cut(e.Message, "failed error: "); ok && refused {
			found[pod] = "it cannot be created: " + strings.TrimPrefix(why, fmt.Sprintf("pods %q is forbidden: ", pod))
		}
	}
	return found
}

// podOfEvent is the pod that was created or refused by what an event says, as
// "Create Pod web-v2-0 in StatefulSet web-v2 failed error: …"; older ones say create.
func podOfEvent(e *corev1.Event) (pod string, ok bool) {
	if e.Reason != eventFailedCreate && e.Reason != eventCreated {
		return "", false
	}
	rest, ok := strings.CutPrefix(e.Message[min(1, len(e.Message)):], "reate Pod ")
	pod, _, _ = strings.Cut(rest, " ")
	return pod, ok
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
