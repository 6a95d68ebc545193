// Package extendedstatefulset implements the controller and the webhooks of ExtendedStatefulSets.
//
// An ExtendedStatefulSet runs an ordinary StatefulSet template. A template change is an upgrade: the
// operator creates a StatefulSet of the new version, reuses the same volumes, and rolls back without
// manual intervention if the new version fails.
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
// A failure in Canary, Promoting or PostJob starts a rollback: the new version returns its ordinals to
// the old version. Then the next attempt begins, or the version is marked stale and stays at 0 pods.
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
// Jobs are created suspended, and are started once their UID is in the record. A missing Job has
// therefore run, or never will. Its result is taken from the last watch event, or is unknown.
//
// The progress of moving ordinals is stored only in spec.ordinals and spec.replicas of the
// StatefulSets.
//
// # Invariant
//
// An ordinal of a zone belongs to one StatefulSet; with Coexist it belongs to two during an upgrade. A
// StatefulSet gets an ordinal only after the pod of any other StatefulSet on that ordinal is deleted.
// An ordinal is taken from a serving pod only while all other pods serve, in all zones. Therefore, at
// most one pod is missing, and two pods never share a claim, except with Coexist. A user who assigns an
// ordinal manually, for example with kubectl scale, is faster than the operator; in this case the
// webhook denies the second pod.
//
// # Packages
//
// Each package imports only those that are named before it: spec (defaults, validation, limits, all
// durations), children (builds what the operator creates), facts (what a pass has read and what follows
// from it), observe (reads the cluster, and keeps the state of the process between passes), record
// (advances the record), rules (decide the actions; rules.go lists them in order), status (conditions,
// events and metrics), webhooks. This package wires them.
package extendedstatefulset
