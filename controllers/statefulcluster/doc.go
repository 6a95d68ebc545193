// Package statefulcluster implements the controller and the webhook of the StatefulCluster kind
// (enge.me/v1alpha1).
//
// # Guarantees
//
// A StatefulCluster is a set of stateful pods without an order. Each name is used once. A member
// is a pod and its claims. A lost member is replaced immediately by a member with a new name and
// new claims, and never comes back. The same name always means the same data.
//
// # The states of a member
//
//	          create pod, then its claims
//	                    |
//	                    v       image, labels, resources: patched in place
//	   +----------->  alive  <-----------------------------+
//	   |              |  |  |                              |
//	   |  update, or  |  |  +--- evidence of a loss ---> lost (may wait for maxConcurrent;
//	   |  an eviction |  |       (node, deadlines)         |  the evidence may disappear)
//	   |  with Keep   |  |                                 |
//	returning <-------+  |  scale-down                     |  delete pod
//	(recorded in         |  or a cordon, with ReplaceFirst |
//	status.updating)     v                                 v
//	                 retired                            departed ---> a new member
//	                     |                                 |
//	                     +------> claims set aside <-------+
//	                              (retained, or deleted by the policy)
//
// # Invariants
//
// No two pods have the same name, except the old and the new pod of an updated member, and only
// while status.updating has the UID of the old one. No claim is mounted by a pod with another id.
//
// # Passes
//
// A pass is one reconciliation (package pass). observe.Reader reads the state of a set.
// facts.Derive computes the facts that follow from it, once. The rules, sorted by priority, read the
// facts and add steps to a plan (rules.Decide). Functions that only compute a value do not change the
// plan. Then the steps are carried out, the Reader remembers the results, and status.Reporter reports
// them.
//
// # Packages
//
// Each package imports only those before it in this list:
//   - spec: defaults, validation, settings and durations
//   - children: builds the objects that the operator creates
//   - facts: the objects that a pass has read, and the facts that follow from them. Its package comment
//     explains the terms for members, claims and other pods
//   - observe: reads the cluster, and remembers the results of writes
//   - rules: decides the actions. Start with rules.go
//   - status: conditions, events and metrics
//   - webhooks: admission
//   - pass: reads, decides and acts
//   - simulate: runs passes in a simulated cluster
//
// # Crash safety
//
// The operator may exit after any write. The order of writes makes the next pass continue correctly:
//   - The pod of a new member is created before its claims. The next pass finds a pod without claims,
//     and creates them.
//   - The name of a new member is written to status.creating before its pod is created. The next pass
//     uses the same name, and creates no second member.
//   - The pod of a lost member is deleted, which makes the loss final, before its replacement is
//     created.
//   - A pod that will be recreated under its name is recorded in status.updating before it is deleted.
//   - The claims of a retired member are labelled with Scaled before its pod is deleted. Claims that
//     lose their pod without this label get the label Lost.
//
// # Deadlines
//
// A deadline after which a member is lost counts only the time in which this process was the
// leader, was running and reached the API server. Other delays, and deadlines that are only
// reported, use the wall clock.
//
// # Cached and live reads
//
// Before pods or claims of a set are created, changed or deleted, the state is read again from the
// API server, and the decision is made again. In such a live pass only revisions, the budget and
// healthy Nodes still come from the cache. Decisions based on the cache alone are:
//   - those that are also correct on a stale cache (the timeless rules: the disruption budget, and
//     the annotation that a revision works);
//   - the status of a pass without other writes, whose patch fails if the object has changed;
//   - the label Deleted of claims whose set is gone, after a live read has not found the set.
package statefulcluster
