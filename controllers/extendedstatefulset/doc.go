// Package extendedstatefulset serves ExtendedStatefulSets.
//
// The promise: an ordinary StatefulSet template, upgraded as a whole new version
// beside the old one, on the same volumes, and taken back by itself when it turns
// out bad.
//
// # States
//
// Each version is a StatefulSet <name>-v<N>, one in each zone. An upgrade goes
// through the phases of the status:
//
//	Stable --template--> Waiting --the old is Ready--> PreJob --> Canary <-----.
//	                                                    |           |          | next zone
//	                                                  fails     are good       |
//	                                                    v           v          |
//	                                                 Aborted    Promoting -----'
//	                                                                | last zone
//	          Stable <-- CleaningUp <-- succeeds -- PostJob <-------'
//
// From Canary, Promoting and PostJob a failure leads back: what the new version
// took is given back to the old one, and then there is another attempt, or the
// version is marked stale and stays at 0 pods.
//
// In Canary good canaries may wait: for a job that is asked about them, and with approval
// Manual for a user (plan_approval.go).
//
// # What is written before what
//
// The status holds the record: which version serves, which is on its way, when its
// attempt began, which jobs ran. A pass either writes the record or acts on it,
// never both; so an operator that dies between two writes finds where it was. The
// number of a version is in the record before anything of that version is made, and
// no number is given out twice.
//
// Jobs are created suspended and started once their UID is in the record: a Job that
// is gone ran, or never will. How it ended is what the watch showed last, or unknown.
//
// How far ordinals have moved is in spec.ordinals and spec.replicas of the
// StatefulSets, and nowhere else.
//
// # The invariant
//
// An ordinal of a zone belongs to one StatefulSet, but with Coexist to two while an
// upgrade is under way. A StatefulSet gets an ordinal only when no pod of another
// has it any more, and an ordinal is taken from a pod that serves only while all
// others serve, in all zones. So two pods never share a claim, and at most one pod
// is missing. Who gives an ordinal by hand is faster than the operator: then the
// webhook refuses the second pod.
//
// # Where to read
//
// observe.go and its kin read the cluster into a world. facts.go derives what pods and
// StatefulSets amount to, and what a version amounts to in all zones. plan.go lists the
// rules in their order: plan_record.go moves the record on, plan_move.go ordinals,
// plan_children.go writes the StatefulSets, plan_claims.go and plan_consent.go say whose
// claims are whose. status.go says it to users, events.go what happened. timing.go has
// all durations, memory.go what a process remembers from pass to pass.
package extendedstatefulset
