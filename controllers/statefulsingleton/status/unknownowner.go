package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// waitsForUnknown returns a pod of an unknown owner that has waited for
// UnknownOwnerPatience, and the running pod that it may want to replace; nil if there is none.
func waitsForUnknown(f *facts.Facts) (next, old *facts.Member) {
	old = f.Active
	if old == nil || !old.Lives() {
		return nil, nil
	}
	for _, m := range f.Waiting {
		if m.AtGate() && m.WaitsForUnknown(old) && f.Since(m.AtGateSince) >= spec.UnknownOwnerPatience {
			return m, old
		}
	}
	return nil, nil
}

// notReplacedText returns the message about a waiting pod whose owner is unknown, with the
// command that helps.
func notReplacedText(f *facts.Facts, next, old *facts.Member) string {
	owner := fmt.Sprintf("it is owned by %s, and the operator does not support this kind of owner", next.Family.Name)
	switch next.Family.Unknown {
	case facts.NoController:
		owner = "no controller owns it"
	case "ReplicaSet":
		owner = fmt.Sprintf("it is owned by %s, which no Deployment owns", next.Family.Name)
	}
	text := fmt.Sprintf("pod %s waits at its gate for pod %s to stop, and the operator cannot determine whether it is a replacement or a standby: %s. "+
		"To hand over: kubectl -n %s delete pod %s. ", next.Name(), old.Name(), owner, old.Pod.Namespace, old.Name())
	if f.DeletesOnTimeout() && f.MadeUnder(old) {
		return text + "spec.onTimeout is DeleteOld, so the operator deletes it after maxTransitionTime"
	}
	return text + "If it is a standby, no action is needed"
}

// ownerUnknown sets condition RolloutHeld to True if a pod whose owner is unknown has waited for
// long.
func ownerUnknown(f *facts.Facts, c *metav1.Condition) {
	next, old := waitsForUnknown(f)
	switch {
	case next == nil:
	case next.Replaced:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonOwnersCompete, competeText(f, next, old)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonOwnerUnknown, notReplacedText(f, next, old)
	}
}

// competeText returns the message about two competing pods, with the remedy.
func competeText(f *facts.Facts, next, old *facts.Member) string {
	why := fmt.Sprintf("the operator has already replaced %d pods within an hour, which is the max", facts.MaxReplaced)
	records := f.Object.Status.Replaced
	if i := slices.IndexFunc(records, func(r v1.ReplacedPod) bool { return facts.IsOf(next, r) }); i >= 0 {
		why = fmt.Sprintf("the operator deleted pod %s of the same owner and revision for pod %s at %s, and the owner recreated it, so both are wanted at the same time",
			records[i].Name, records[i].For, records[i].DeletedAt.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s waits at its gate for %s to stop, and spec.onTimeout deletes no pod for it: %s; at most one may run. "+
		"Change the owners to want only one of them. To hand over once: kubectl -n %s delete pod %s",
		next.Described(), old.Described(), why, old.Pod.Namespace, old.Name())
}
