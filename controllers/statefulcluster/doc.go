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
// A pass is one reconciliation. observe.Reader reads the state of a set. facts.Derive computes the
// facts that follow from it, once. Rules, sorted by priority, read the facts and add steps to a
// plan; functions that only compute a value do not change the plan. Then the steps are carried
// out, the responses of the API server are remembered, and status, events and metrics report the
// results.
//
// # Packages
//
// Each package imports only those that are named before it: spec (defaults, validation, settings),
// children (builds what the operator creates), facts (what a pass has read and what follows from
// it), observe (reads the cluster), rules (decide the actions), status (conditions, events and
// metrics), webhooks. This package wires them.
//
// # Crash safety
//
// The pod is the record of a member. It is created before its claims, so that after a crash the
// next pass finds a pod without claims and creates them. The name of a new member is written to
// status.creating before its pod is created, so that the next pass uses the same name and creates
// no second member. A loss becomes final with the deletion of the pod, before a replacement is
// created. A pod that will be recreated under its name is recorded in status.updating before it is
// deleted. A scale-down labels a claim with Scaled before it deletes the pod. A claim that loses
// its pod without a label is labelled Lost.
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
