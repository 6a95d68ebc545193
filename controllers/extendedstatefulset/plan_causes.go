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

// This file describes why pods are not Ready, in text for users. The pods of a failed version may
// already be deleted when a user reads the status, so the text is stored in the record.

const (
	// causesAtMost is the max number of different causes in a text.
	causesAtMost = 3
	// causeLength is the max length of one cause.
	causeLength = 200
)

// reasons groups the pods that are not Ready by cause, in the order in which the causes were found.
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

// String returns the first causes, followed by the pods without a known cause, which in most cases are
// starting.
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

// unready lists the pods of a version that are not Ready, or Ready only between crashes, with the known
// causes. Number 0 means all versions. It returns "" if all pods are Ready.
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

// causeOn reports whether the pod of an ordinal is not Ready, or Ready only between crashes, and
// returns the cause; "" if it is unknown.
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
	cause = causes.OfCrash(pod).String() // it is Ready, but not for minReadySeconds
	return cause, cause != ""
}

// hindered describes why pods of a version are not Ready. It includes write errors of the operator, and
// a terminating pod of another version that still has the ordinal.
func hindered(w *world, number int64) string {
	text := unready(w, number) + refusedUs(w)
	for _, t := range w.pods {
		if t.version != number && podstate.Terminating(t.pod) {
			return text + fmt.Sprintf("; pod %s is still terminating", t.pod.Name)
		}
	}
	return text
}

// refusedUs describes the last write error of the operator; "" if there is none. A StatefulSet or Job
// that cannot be created has no pods that could show a cause.
func refusedUs(w *world) string {
	if w.refused == "" {
		return ""
	}
	return "; the API server refuses a write: " + excerpt.Of(w.refused, causeLength)
}

// causeOf returns why a pod is not Ready; "" if the cause is unknown.
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

// classOf describes the StorageClass that a claim requests.
func classOf(c *corev1.PersistentVolumeClaim) string {
	if name := c.Spec.StorageClassName; name != nil {
		return fmt.Sprintf("of StorageClass %q", *name)
	}
	return "of the default StorageClass"
}

// some is a list of names that prints the first three and the number of the others.
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
