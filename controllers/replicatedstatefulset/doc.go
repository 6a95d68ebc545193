// Package replicatedstatefulset contains the controller of the ReplicatedStatefulSet kind
// (clusterlabs.org/v1alpha1).
//
// # The promise
//
// The operator controls a replicated application by five small commands. It starts the
// newest copy first and keeps the wanted number of primaries. It never runs two primaries
// where one is wanted, not even while nodes, the network or the operator fail.
//
// # The states of a member
//
//	           the container of the commands runs
//	pending ------------------------------------> unknown
//	   ^                                             |  status answers
//	   |  the kubelet reports the end                v
//	   +------ from any -------- idle (7) <--- stop --- failed (anything else)
//	                              |  ^
//	           secondary, primary |  | stop
//	           seed               v  |
//	                       secondary (0) <--- promote, demote ---> primary (8)
//
// A state is the result of a status command that was sent after the last mutating command
// had ended in the same container. Without a secondary command, 0 means primary too.
//
// # The record
//
// The state that must survive a restart is in the status of the object. status.grants lists
// the containers in which the application may be primary. status.commands lists the mutating
// commands with an unknown outcome. Both are supersets of the truth at all times:
//
//   - An entry is written before the command is sent, in one patch that is bound to the
//     resourceVersion that was read. If the patch fails, nothing is sent. If two operators
//     run, only one of them can write it.
//   - An entry is removed only on proof from a live read: the kubelet reports that this
//     container has ended, an administrator declares the machine off, or a status command,
//     sent after the command's end, reports that the member is not primary. Elapsed time is
//     no proof.
//
// # The invariant
//
// A command that may make a primary is sent only while there are fewer grants than wanted
// primaries. Since grants are a superset of the members that act as primary, there are never
// more primaries than wanted.
//
// # Commands with an unknown outcome
//
// A broken stream does not end the command in the container, and a restart of the operator
// breaks all streams. Such a command stays on record. After a start that may make a primary,
// only status 8 proves that it took effect; 7 and 0 prove nothing. When its timeout has
// expired, its pod is deleted, and the operator waits for the kubelet. A request in flight
// addresses the pod by name. So a command also counts for the replacement container that it
// may have reached (mayReachNext).
//
// # Packages
//
// Each package imports only those that are named before it: spec (defaults, validation, names,
// all durations), children (builds what the operator creates), record (advances the record by
// what a pass has read), facts (what a pass has read and what follows from it), observe (reads
// the cluster, and keeps the state of the process between passes), rules (decide the actions;
// rules.go lists them in order), status (conditions, events and metrics), webhooks. This package
// wires them.
//
// # A pass
//
// Decisions on cached data may only send queries (status, sequence). For everything else the
// operator reads the cluster live and decides again. The table of rules in rules/rules.go is the
// overview: first the record, then safety, then order. Commands run concurrently with the
// passes, on a Board whose contents may be lost.
package replicatedstatefulset
