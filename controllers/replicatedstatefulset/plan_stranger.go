package replicatedstatefulset

import (
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// A StatefulSet takes every pod that has the name and the labels of one of its own, whoever
// made it. Where it belongs to another object, its word on how new its copy is would decide
// who is seeded, and the commands would reach a program that they are not for.

// whyStranger says why a pod with the name of a member is not made for this set; "" if
// nothing says so. It is not measured by the StatefulSet's age: one that was deleted comes
// back around the pods that run. What the record speaks of is ours, and what is being deleted
// has to stop, whoever's it is.
func (w *world) whyStranger(m *member, written bool) string {
	switch {
	case written, m.terminating():
		return ""
	case m.pod.Annotations[v1alpha1.AnnotationTemplate] == "":
		return "was not made from its template"
	case m.pod.CreationTimestamp.Add(clocksDiffer).Before(w.set.CreationTimestamp.Time):
		return "is older than the object"
	}
	return ""
}

// explainStrangers says what is wrong with the first of such pods, and what a person may do.
func explainStrangers(strangers []*member) string {
	m := strangers[0]
	var others string
	if len(strangers) > 1 {
		others = "; so it is with " + namesOf(strangers[1:min(len(strangers), 4)])
	}
	return fmt.Sprintf("pod %s %s, so no command is run in it, and no member can be made while it has that name%s. If it is not needed: "+
		"kubectl -n %s delete pod %s (claims stay)", m.name(), m.stranger, others, m.pod.Namespace, m.name())
}
