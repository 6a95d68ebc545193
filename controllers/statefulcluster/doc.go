// Package statefulcluster runs the StatefulCluster kind (enge.me/v1alpha1).
//
// # The promise
//
// A set of stateful pods with no order, in which a name is used once. A member
// is a pod and its claims, one unit. A lost member is replaced at once by one
// with a new name and new claims, and never comes back. Same name means same
// data, always.
//
// # The states of a member
//
//	          create pod, then its claims
//	                    |
//	                    v       image, labels, resources: patched in place
//	   +----------->  alive  <-----------------------------+
//	   |              |  |  |                              |
//	   |  update, or  |  |  +--- evidence of a loss ---> lost (may wait for its turn;
//	   |  an eviction |  |       (node, deadlines)         |  the evidence may go away)
//	   |  with Keep   |  |                                 |
//	returning <-------+  |  scale-down                     |  delete pod
//	(written in          |  or a cordon, with ReplaceFirst |
//	status.updating)     v                                 v
//	                 retired                            departed ---> a new member
//	                     |                                 |
//	                     +------> claims set aside <-------+
//	                              (retained, or deleted by the policy)
//
// # The invariant
//
// No two pods ever carry one name, except an updated member's old and new pod,
// and only while status.updating names the old one's UID. No claim is ever
// mounted by a pod of another id.
//
// # A pass
//
// observe reads the world of a set. derive says, once, what follows from it: these are
// the facts. Rules, in order of importance, read facts and write steps into a plan; no
// function that answers a question writes into it. The steps are carried out, what the
// API server answered is remembered, and the status, events and metrics report it.
//
// # What survives a crash
//
// The pod is the record: it is created before its claims, so that whoever
// comes next finds a pod without claims and creates them. The name of a new
// member stands in status.creating before its pod is created: whoever comes next
// goes on with that name and makes no second member. The loss of a member
// is the deletion of its pod, which comes before its replacement. A pod that is
// to come back under its name stands in status.updating before it is deleted.
// A claim gets its label Scaled before its pod is deleted by a scale-down; a
// claim that loses its pod without a label was Lost.
//
// # What time counts
//
// A deadline after which a member is lost counts only time in which this process
// led, ran and reached the API server. What delays, or only tells, counts the
// wall clock.
//
// # What is decided on the cache
//
// Before a pod or a claim of a set is created, changed or deleted, the world is
// read again, live, and decided on again; only revisions, the budget and Nodes
// that look well come from the cache then too. The cache alone decides on what
// is right in an old world as well (the timeless rules: the disruption budget,
// the mark that a revision works), on the status of a pass without other acts,
// whose patch is refused if the object is not the one that was read, and on the
// label Deleted of claims whose set is gone, after a live read has not found it.
package statefulcluster
