package extendedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
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

// reasons are why pods are not Ready, with the pods of each, in the order in which they
// were found.
type reasons struct {
	all  []string
	pods map[string]*some
}

func (c *reasons) add(pod, cause string) {
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
func (c *reasons) String() string {
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
	var found reasons
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
	cause = causes.OfCrash(pod).String() // it is Ready, but not for long enough
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
	why := causes.Of(pod)
	if why.Word != causes.Unschedulable {
		return why.String()
	}
	for _, t := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
		c := w.claims[claimName(w.set.Name, t.Name, z, ordinal)]
		if c == nil || c.Status.Phase != corev1.ClaimPending {
			continue
		}
		return fmt.Sprintf("%s; claim %s %s is not bound", why, c.Name, classOf(c))
	}
	return why.String()
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
