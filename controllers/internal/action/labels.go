package action

import "sigs.k8s.io/controller-runtime/pkg/client"

// RemoveLabels returns the write that removes labels from an object.
func RemoveLabels(from client.Object, labels []string, reason, detail string) Chain {
	next := from.DeepCopyObject().(client.Object)
	left := next.GetLabels()
	for _, label := range labels {
		delete(left, label)
	}
	next.SetLabels(left)
	return Chain{{Verb: Patch, Object: next, From: from, Reason: reason, Detail: detail}}
}
