package facts

import (
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// A StatefulSet adopts any pod with the name and the labels of one of its pods, regardless of its
// creator. If such a foreign pod took part in decisions, its sequence could decide which member is
// seeded, and commands would reach a program that they are not for. It counts as a member, because
// no other pod can have its name, but no command is run in it.
//
// Pods with our labels but without the name of a member are World.MislabeledPods.

// WhyForeign states why a pod with the name of a member was not created for this set. It is "" if
// no reason is found. The age of the StatefulSet does not count, because a recreated StatefulSet
// adopts the running pods. A pod on record belongs to the set, and a terminating pod must stop
// regardless of its owner.
func (w *World) WhyForeign(m *Member, onRecord bool) string {
	switch {
	case onRecord, m.Terminating():
		return ""
	case m.Pod.Annotations[v1alpha1.AnnotationTemplate] == "":
		return "was not created from this set's template"
	case m.Pod.CreationTimestamp.Add(spec.ClocksDiffer).Before(w.Set.CreationTimestamp.Time):
		return "is older than the object"
	}
	return ""
}

// explainForeignPods describes the problem with the first of these pods, and the remedy.
func explainForeignPods(foreign []*Member) string {
	m := foreign[0]
	var others string
	if len(foreign) > 1 {
		others = "; this also applies to " + NamesOf(foreign[1:min(len(foreign), 4)])
	}
	return fmt.Sprintf("pod %s %s, so no command is run in it, and its name blocks the creation of a member%s. If it is not needed: "+
		"kubectl -n %s delete pod %s (claims are kept)", m.Name(), m.WhyForeign, others, m.Pod.Namespace, m.Name())
}
