// Package facts derives the facts that rules and conditions need from the objects that a pass has
// read. It is pure.
//
// World has the objects, and Derive computes Facts from it once a pass.
//
// # Pods
//
// A Member is a pod that matches the selector, or that belonged to the object before. Its standing
// (see the states in package statefulsingleton) puts it into one of these groups:
//   - Blockers: the pod may be running its program, so no other pod starts. Started are the blockers
//     whose program has started, as far as the kubelet has reported. Active is one blocker: the holder
//     if it is one, or else the oldest.
//   - Waiting: the pod has the gate and no grant. It is at its gate (AtGate) if the gate is running,
//     and its gate is steady (GateSteady) if it has been running for a while.
//   - The others have stopped, or never start.
//
// A blocker is granted (Granted) if it has the annotation that starts the program. It is the Holder if
// status.holder names it, which may be a moment before. It is protected (Protected) if it has the
// finalizer that keeps it visible until it has stopped.
//
// # Owners
//
// Family describes the owner of a pod, such as its Deployment, and the revision of the pod. A
// successor of a pod (Successors) is a waiting pod that its owner created to replace it. If the kind of
// the owner is unknown, a waiting pod may be the replacement of another or its standby, which the
// operator cannot determine (MayBeReplaced).
//
// Rivals are other StatefulSingletons whose selectors overlap.
package facts
