// Package replicatedstatefulset runs the ReplicatedStatefulSet kind
// (clusterlabs.org/v1alpha1).
//
// # The promise
//
// Any replicated application, driven by five small commands, comes up with its
// newest copy first, keeps the wanted number of primaries, and never has two where
// one is wanted, not even while nodes, the network or the operator fail.
//
// # The states of a member
//
//	           the container of the commands runs
//	pending ------------------------------------> unknown
//	   ^                                             |  status answers
//	   |  it ends, by the kubelet's word             v
//	   +------ from any -------- idle (7) <--- stop --- failed (anything else)
//	                              |  ^
//	           secondary, primary |  | stop
//	           seed               v  |
//	                       secondary (0) <--- promote, demote ---> primary (8)
//
// A state is an answer to status, asked after the last command that changes
// something had ended in that very container. Where there is no command secondary,
// 0 is primary too.
//
// # The record
//
// What must not be forgotten is in the status of the object. status.grants names
// the containers in which the application may be primary, status.commands the
// commands that change something and whose end has not been seen. Both are
// supersets of the truth at every instant:
//
//   - an entry is written before the command is sent, in one patch that is bound to
//     the version of the object that was read. If it cannot be written, nothing is
//     sent; of two operators one can write it;
//   - it goes on proof only, from a live read: the kubelet says that this container
//     has ended, an administrator says that its machine is off, or status, asked
//     after the command's end, says that it is no primary. Time proves nothing.
//
// # The invariant
//
// A command that may make a primary is sent only while there are fewer grants than
// primaries wanted. Since grants are a superset of those that act as primary, these
// are never more than are wanted.
//
// # A command whose end was not seen
//
// Cutting a stream ends nothing in the container, and a restart of the operator
// cuts all. Such a command stays on record. After a start that may make a
// primary only status 8 shows that it has taken effect; 7 and 0 prove nothing.
// When its time is over, its pod is deleted and the kubelet waited for. A request
// on its way finds a pod by its name: what may have reached the container that took
// the other's place counts there too (mayReachNext).
//
// # A pass
//
// Decisions on the cache may ask; for all else the world is read live and decided
// on again. rules in plan.go are the table of contents: first the record, then
// safety, then order. Commands run beside the passes, on a Board that may be lost.
package replicatedstatefulset
