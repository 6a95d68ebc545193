// Package extendedstatefulset implements the controller and the webhooks of ExtendedStatefulSets.
//
// An ExtendedStatefulSet runs an ordinary StatefulSet template. A template change is an upgrade: the
// operator creates a StatefulSet of the new version, reuses the same volumes, and rolls back without
// manual intervention if the new version fails.
//
// # Terms
//
// The API calls an upgrade an update: status.update has the upgrade in progress or given up, and
// status.updateVersion its version. In the code, set is the ExtendedStatefulSet, except in facts.Child,
// whose Set is a StatefulSet. A number is the number of a version. An ordinal of a zone has an owner: the
// version whose StatefulSet has the ordinal.
//
// There are two ways to hand over claims from version to version (handover). With PerOrdinal, ordinals
// move one by one from the old StatefulSet to the new one. With Coexist, both StatefulSets have all
// ordinals, and their pods share the claims.
//
// A pod is healthy (Ready and not terminating), available (healthy for minReadySeconds), or proven
// (healthy for its probation). The available pods of the current version serve clients.
//
// # States
//
// Each version is a StatefulSet <name>-v<N>, one in each zone. The current version is the version whose
// pods serve clients (status.currentVersion). An upgrade passes through the phases of the status:
//
//	Stable --template--> Waiting --the old is Ready--> PreJob --> Canary <-----.
//	                                                    |           |          | next zone
//	                                                  fails     are good       |
//	                                                    v           v          |
//	                                                 Aborted    Promoting -----'
//	                                                                | last zone
//	          Stable <-- CleaningUp <-- succeeds -- PostJob <-------'
//
// A failure in Canary, Promoting or PostJob ends the attempt and starts a rollback: the new version
// returns its ordinals to the old version. Then the next attempt begins, or the version is marked stale
// and stays at 0 pods. The phase does not show the rollback before a further attempt: update.returning
// does.
//
// With good canaries, an upgrade stays in Canary until the Job for the canaries ends, and with approval
// Manual until a user approves the revision (record/approval.go).
//
// # Write order
//
// The status holds the record: the current version, the version of the upgrade, the start of its
// attempt, and the Jobs that ran. A pass either writes the record or acts on it, never both. An
// operator that crashes between two writes therefore continues where it stopped. The number of a
// version is in the record before anything of that version is created, and no number is used twice.
//
// Jobs are created suspended, and are started once their UID is in the record. A recorded Job that is
// missing may have run, and is not created again. Its result is taken from the last watch event, or is
// unknown.
//
// The progress of moving ordinals is stored only in spec.ordinals and spec.replicas of the StatefulSets,
// so it cannot contradict them (rules/handover.go).
//
// # Invariant
//
// An ordinal of a zone belongs to one StatefulSet; with Coexist it belongs to two during an upgrade. A
// StatefulSet gets an ordinal only after the pod of any other StatefulSet on that ordinal is deleted.
// An ordinal is taken from an available pod only while all other pods are available, in all zones.
// Therefore, at most one pod is missing, and two pods never share a claim, except with Coexist. A user
// who assigns an ordinal manually, for example with kubectl scale, is faster than the operator; in this
// case the webhook denies the second pod.
//
// # Packages
//
// Each package imports only those that are named before it: spec (defaults, validation, limits, all
// durations), children (builds what the operator creates), facts (what a pass has read and what follows
// from it), observe (reads the cluster, and keeps the state of the process between passes), record
// (advances the record), rules (decide the actions; rules.go lists them in order), status (conditions,
// events and metrics), webhooks, pass (makes a pass), simulate (simulates passes together with all others
// that act on the pods). This package wires them.
//
// To understand a pass, read pass/pass.go, facts/world.go (the input), record/record.go (the states),
// rules/rules.go (the actions) and rules/handover.go (the invariant).
package extendedstatefulset
