// Package facts derives the facts that rules and conditions need from the objects that a pass has
// read. It is pure.
//
// World has the objects, and Derive computes Facts from it once a pass.
//
// # Members
//
// Each member that has a pod is in exactly one list:
//   - Alive: its pod is not being deleted, and it is not lost.
//   - Lost: it will be replaced. The loss becomes final when its pod is deleted.
//   - Returning: its pod is being deleted or is gone, and is recreated with the same name and
//     claims. It has an entry in status.updating.
//   - Departed: its pod is being deleted, and it does not return. A scale-down or an update with
//     surge retired it (WasRetired), or a user or the control plane deleted the pod.
//
// A member without a pod is known from its claims. It is vanished if the claims are not retained
// and it is not returning: its pod disappeared between two passes, so the operator has to decide
// whether it is lost or returns. That depends on how its pod ended, which only the delete event of
// the pod shows: Deleted has the deletions by users that this process observed, and Ending the
// members whose delete event has not arrived yet.
//
// # Claims
//
// A claim is loose if its member has no pod. It is retained (also: set aside) if it has label
// LabelRetained, with the reason as value. It is given if a user annotated it for adoption, and
// recorded if status.claims has it with its UID.
//
// # Pods that are not members
//
//   - Orphans have the labels of members and no owner.
//   - Labelled pods have the labels of members and another owner.
//   - Foreign pods match the selector of the set. Services may send them traffic.
package facts
