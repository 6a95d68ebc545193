// Package statefulsingleton runs the StatefulSingleton kind
// (apps.openshift.statefulsingleton.com/v1).
//
// # The promise
//
// Of all the pods that match, at most one runs its program, at every instant,
// whatever happens; and when one stops, the next starts within a second. For
// ordinary Deployments and StatefulSets, unchanged.
//
// # The states of a pod
//
//	 the webhook puts            status.holder, then              the kubelet shows
//	 the gate into it            annotation and finalizer         the annotation to the gate
//	        |                              |                              |
//	        v                              v                              v
//	new --------> waiting -----------> granted ---------------------> running
//	 |               |                    |                              |
//	 | no gate       | deleted            |  seen stopped: phase ended and every container
//	 v               v                    |  terminated, on one live read; or its Node fenced
//	unwrapped ---> ended <----------------+------------------------------+
//
// A waiting pod has never run its program and cannot, whatever is lost: the
// gate in it starts the program only for an annotation that holds this pod's own
// UID. A granted pod counts as running from the moment that status.holder names
// it. An unwrapped pod was made before the object, or past the webhook and the
// guard; it may be running its program from the start, and so counts as running
// until it has ended.
//
// # The invariant
//
// No pod is granted while another that matches is unwrapped, granted or running.
// A pod leaves these states only by proof, never by time: restart counts,
// back-off, a pod missing from a cache and a Node that is silent prove nothing.
//
// # A handover
//
//	old pod    runs ........ SIGTERM ........ exit
//	                            ^              |  the kubelet says: terminated
//	operator   another waits ---+              +---> holder, then grant
//	                                                         |  the kubelet writes the file
//	new pod    gate waits ........................................+---> program
//	                                          |<-- the gap, about 0.25 s -->|
//
// The grant is two writes. status.holder comes first, with the resourceVersion
// that was read: it is the lock, and of two operators one wins it. Then one
// patch of the pod with its UID and resourceVersion: the annotation, and the
// finalizer that keeps the pod visible until its containers are seen stopped.
// The API server refuses that patch for a pod that is being deleted. If the
// operator dies in between, the next pass repeats the second write for the same
// holder, or goes on to the next epoch if that pod is gone.
//
// # What holds while the operator is down
//
// Programs run on, and no pod starts. New pods that match are refused by the
// guard, a policy in the API server itself that knows a pod with a gate from one
// without (build.go); the pods of strangers pass at once, since the webhook
// fails open.
//
// # The gate
//
// inject.go says what it is. Binary and Script hold back the containers that are
// the program, Init the whole pod. What is added to a pod is found in names.go
// of the API, and in full in testdata/injected-*.yaml.
package statefulsingleton
