// Package replicatedstatefulset contains the controller of the ReplicatedStatefulSet kind
// (clusterlabs.org/v1alpha1).
//
// # The promise
//
// The operator controls a replicated application only by the commands in spec.pod.commands. It
// starts the newest copy first and keeps the wanted number of primaries. It never runs two primaries
// where one is wanted, not even while nodes, the network or the operator fail.
//
// # Terms
//
//   - A member is a pod of the set, with its claims. Its copy is its data. The number that command
//     sequence prints is the version of the copy: a higher number is a newer copy.
//   - Queries are the commands status and sequence, which change nothing. All other commands that the
//     operator sends are mutating. (It does not send preStop, which the kubelet runs.) A start is one
//     of seed, primary, promote and secondary. All but the last may make a primary.
//   - A grant is the entry in status.grants that a container may be primary.
//   - The loss of the last primary is the removal of its grant. An answer that is older than the loss
//     does not count when the next primary is chosen, except that of status if the former primary is
//     one of the running secondaries.
//   - A container is the one in which commands run. A restarted container is another one: no result
//     of the former container applies to it.
//   - A foreign pod has the name of a member, and was not created for this set. It counts as a member
//     in which no command runs. A mislabeled pod has our labels, and is not a member.
//   - A listed member is in spec.maintenance. It is parked as soon as its role is handed over and no
//     command runs in it.
//
// # The states of a member
//
// The numbers are exit codes of command status.
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
// more primaries than wanted. model_test.go checks this in all states of a model
// (docs/decisions/0052), and which rules it needs.
//
// # Commands with an unknown outcome
//
// A broken stream does not end the command in the container, and a restart of the operator
// breaks all streams. Such a command stays on record. After a start that may make a primary,
// only status 8 proves that it took effect. 7 and 0 prove nothing, because the command may still
// be in progress. When its timeout has expired, its pod is deleted, and the operator waits until
// the kubelet reports the end.
//
// The request that starts a command addresses the pod and the container by their names. A request
// in flight can therefore reach the replacement of the container that it was sent to. Such a
// command has strayed. Until spec.StrayUntil, and if a replacement started before that, the
// command also counts for the replacement (record.Ending.mayReachNext).
//
// # Packages
//
// Each package imports only those that are named before it:
//
//   - spec: defaults, validation, names, all durations
//   - children: builds the objects that the operator creates
//   - record: updates the record by the facts of a pass
//   - facts: the input of a decision (World), and the values that are derived from it (Facts)
//   - observe: reads the World, and keeps the memory of the process between passes
//   - rules: decide the actions; rules.go lists them in order
//   - status: conditions, events and metrics
//   - webhooks: admission of objects, and evictions
//   - pass: runs a pass; it does not depend on webhooks or a manager
//   - simulate: simulates a set with its operator, for stories and for plans
//
// This package connects them with a manager.
//
// To read the code, begin with facts/world.go (the input of a decision), record/record.go (the part
// of it that is stored) and rules/rules.go (the rules in order). rules/start.go has the choice of
// the first primary, rules/commands.go the only function that sends a mutating command, and
// record/endings.go the proof that a command has ended.
//
// # A pass
//
// Decisions on cached data may only send queries. For everything else the operator reads the
// cluster live and decides again. The table of rules in rules/rules.go is the overview: first the
// record, then safety, then the tasks in order of their importance.
//
// Commands run concurrently with the passes, and their results are kept on a podexec.Board. The
// Board is in memory. If it is lost, the commands on record have an unknown outcome.
package replicatedstatefulset
