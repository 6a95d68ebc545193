package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
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
	pods map[string]*children.ShortList
}

// add adds a pod and its cause; "" if the cause is unknown.
func (c *reasons) add(pod, cause string) {
	if c.pods[cause] == nil {
		if c.pods == nil {
			c.pods = map[string]*children.ShortList{}
		}
		c.all, c.pods[cause] = append(c.all, cause), &children.ShortList{}
	}
	c.pods[cause].Add(pod)
}

// String returns the first causes, followed by the pods without a known cause, which in most cases are
// starting.
func (c *reasons) String() string {
	if len(c.all) == 0 {
		return ""
	}
	named := slices.DeleteFunc(slices.Clone(c.all), func(cause string) bool { return cause == "" })
	parts := make([]string, 0, causesAtMost)
	for _, cause := range named[:min(len(named), causesAtMost)] {
		parts = append(parts, c.pods[cause].String()+" ("+excerpt.Of(cause, causeLength)+")")
	}
	if others := c.pods[""]; others != nil && len(parts) < causesAtMost {
		parts = append(parts, others.String())
	}
	return "; not Ready: " + strings.Join(parts, ", ")
}

// Unready lists the pods of a version that are not Ready, or Ready only between crashes, with the known
// causes. Number 0 means all versions. It returns "" if all pods are Ready.
func Unready(w *World, number int64) string {
	var found reasons
	for _, c := range w.Children {
		if c.Terminating() || (number != 0 && c.Version != number) {
			continue
		}
		for o := range c.Span().Ordinals() {
			if cause, unready := causeOn(w, c, o); unready {
				found.add(fmt.Sprintf("%s-%d", c.Set.Name, o), cause)
			}
		}
	}
	return found.String()
}

// causeOn reports whether the pod of an ordinal is not Ready, or Ready only between crashes, and
// returns the cause; "" if it is unknown.
func causeOn(w *World, c *Child, ordinal int32) (cause string, unready bool) {
	pod := c.Pods[ordinal]
	switch {
	case pod == nil:
		name := fmt.Sprintf("%s-%d", c.Set.Name, ordinal)
		return cmp.Or(w.Refusals[name], w.Refusals[c.Set.Name]), true
	case podstate.Terminating(pod):
		return "it is being deleted", true
	case !podstate.Ready(pod):
		return causeOf(w, pod, children.Zone{Index: c.Zone}, ordinal), true
	case w.Clock().Available(pod):
		return "", false
	}
	cause = causes.OfCrash(pod).String() // it is Ready, but not for minReadySeconds
	return cause, cause != ""
}

// FailureCauses describes why an attempt with a version fails: the pods of the version that are not Ready,
// a write error of the operator, and a terminating pod of another version that still has an ordinal.
func FailureCauses(w *World, number int64) string {
	text := Unready(w, number) + RefusedWrite(w)
	for _, t := range w.Pods {
		if t.Version != number && podstate.Terminating(t.Pod) {
			return text + fmt.Sprintf("; pod %s is still terminating", t.Pod.Name)
		}
	}
	return text
}

// RefusedWrite describes the last write error of the operator; "" if there is none. A StatefulSet or Job
// that cannot be created has no pods that could show a cause.
func RefusedWrite(w *World) string {
	if w.Refused == "" {
		return ""
	}
	return "; the API server refuses a write: " + excerpt.Of(w.Refused, causeLength)
}

// causeOf returns why a pod is not Ready; "" if the cause is unknown.
func causeOf(w *World, pod *corev1.Pod, z children.Zone, ordinal int32) string {
	why := causes.Of(pod)
	if why.Word != causes.Unschedulable {
		return why.String()
	}
	for _, t := range w.Set.Spec.Template.Spec.VolumeClaimTemplates {
		c := w.Claims[children.ClaimName(w.Set.Name, t.Name, z, ordinal)]
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
