// Package statefulsingleton implements the controller and the webhooks of the
// StatefulSingleton kind (apps.openshift.statefulsingleton.com/v1).
//
// # Guarantee
//
// At most one of the pods that match the selector runs its program at any time, whatever
// happens. When it stops, the next one starts within a second. The pods belong to ordinary
// Deployments and StatefulSets, which need no changes.
//
// # States of a pod
//
//	 the webhook adds            status.holder, then              the kubelet shows
//	 the gate                    annotation and finalizer         the annotation to the gate
//	        |                              |                              |
//	        v                              v                              v
//	new --------> waiting -----------> granted ---------------------> running
//	 |               |                    |                              |
//	 | no gate       | deleted            |  seen stopped: phase ended and every container
//	 v               v                    |  terminated, in one live read; or its Node fenced
//	without -----> ended <----------------+------------------------------+
//	gate
//
// A waiting pod has never run its program and cannot run it, whatever fails: its gate
// starts the program only for an annotation with this pod's own UID. A granted pod counts
// as running from the moment that status.holder names it. A pod without the gate was created
// before the object, or bypassed the webhook and the guard. It may have been running its
// program from the start, so it counts as running until it has ended. A pod that counts as
// running is a blocker.
//
// # Invariant
//
// No pod is granted while another matching pod is a blocker. A blocker stops being one only
// by proof that it has stopped, never because time has passed. Restart counts, back-off, a
// pod missing from a cache, and an unreachable Node are no proof.
//
// # Handover
//
//	old pod    runs ........ SIGTERM ........ exit
//	                            ^              |  the kubelet reports: terminated
//	operator   another waits ---+              +---> holder, then grant
//	                                                         |  the kubelet writes the file
//	new pod    gate waits ........................................+---> program
//	                                          |<-- the gap, about 0.25 s -->|
//
// A grant consists of two writes. The first write sets status.holder and requires the
// resourceVersion that was read. It is the lock: of two operators only one succeeds. The
// second write is one patch of the pod that requires the pod's UID and resourceVersion. It
// sets the annotation, and the finalizer that keeps the pod visible until its containers
// are seen stopped. The API server rejects that patch for a terminating pod. If the
// operator dies between the two writes, the next pass repeats the second write for the same
// holder, or continues with the next epoch if that pod is gone.
//
// # While the operator is down
//
// Running programs keep running, and no pod starts. The guard rejects new pods that match.
// It is a policy in the API server that distinguishes pods with a gate from pods without
// one (children/build.go). Pods that no object selects are created without delay, because the
// webhook fails open.
//
// # The gate
//
// children/inject.go adds the gate. Modes Binary and Script hold back the containers of the program,
// mode Init holds back the whole pod. The names of everything that is added to a pod are in
// names.go of the API package; complete examples are in children/testdata/injected-*.yaml.
//
// # Passes
//
// A pass is one reconciliation (pass.Reconciler). observe.Reader reads the object and its
// pods live. facts.Derive computes the facts that follow from them, once. The rules, sorted by
// priority, read the facts and add actions to a plan (rules.Decide). Then the actions are
// carried out, and status.Reporter reports the results.
//
// # Packages
//
// Each package imports only those before it in this list:
//   - spec: defaults, validation, selectors and durations
//   - children: adds the gate to pods, and builds the guard and other objects
//   - facts: the objects that a pass has read, and the facts that follow from them. Its package
//     comment explains the terms for pods and owners
//   - observe: reads the cluster, watches pods, and keeps state in memory
//   - rules: decides the actions. Start with rules.go
//   - status: conditions, events and metrics
//   - webhooks: admission of pods and StatefulSingletons
//   - pass: makes a pass
//   - simulate: simulates passes together with all others that act on the pods
package statefulsingleton
