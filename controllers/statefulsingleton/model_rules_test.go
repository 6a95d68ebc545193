package statefulsingleton_test

import "testing"

// Each row drops a rule. Then two programs run at once, unless the row explains why not. -v
// prints one of the shortest ways.
var rows = []struct {
	name    string
	m       model
	because string // why the guarantee holds without the rule
	stuck   bool   // but a pod can wait forever
}{
	{name: "status.holder is written without its resourceVersion", m: twoOperators(0, lock)},
	{name: "the second write is bound to the pod's name, not to its UID", m: twoOperators(forced, grantBoundToUID), stuck: true,
		because: "the grant contains the UID, and the gate of another pod ignores it; the finalizer stays on the wrong pod"},
	{name: "the second write is bound to the pod's name, and the gate accepts any grant", m: twoOperators(forced, grantBoundToUID|gateAsksForUID)},
	{name: "the second write is not bound to the pod's resourceVersion", m: twoOperators(forced|crashes|copies, grantBoundToVersion),
		because: "the API server refuses the write for a terminating pod, and a running holder remains the holder"},
	{name: "the second write is not bound to the pod's resourceVersion, and a kubelet rejects a waiting pod", m: twoOperators(refusals, grantBoundToVersion)},
	{name: "the grant does not add the finalizer", m: oneOperator(forced, grantBringsFinalizer)},
	{name: "pods without the gate get no finalizer", m: oneOperator(forced|ungated, protects)},

	{name: "a pod has stopped when its containers are terminated", m: oneOperator(crashes, stoppedNeedsPhase)},
	{name: "a pod has stopped when its phase is Failed", m: oneOperator(outages, stoppedNeedsContainers)},
	{name: "a pod has stopped when its containers are terminated and another client set phase Failed", m: oneOperator(outages|crashes, stoppedNeedsKubelet)},
	{name: "a pod without the gate has stopped when it has no container statuses", m: oneOperator(refusals|ungated, stoppedNeedsStatuses)},
	{name: "a pod has stopped when it is missing in the cache", m: oneOperator(0, liveRead)},
	{name: "a pod that was granted and then rejected by its kubelet is not deleted", m: oneOperator(refusals, refusedAreDeleted), stuck: true,
		because: "the pod only blocks others: the kubelet reports its containers after it is deleted"},
	{name: "a holder is granted although its phase is terminal", m: twoOperators(refusals, endedWaitsNoMore)},

	{name: "a gate accepts a grant for another UID", m: oneOperator(copies, gateAsksForUID)},
	{name: "pods without the gate do not count", m: oneOperator(ungated, ungatedCount)},
	{name: "relabelled pods do not count", m: oneOperator(relabels|deletions, relabelledCount)},
	{name: "only the holder counts, and other pods with a grant or the finalizer do not", m: oneOperator(deletions, grantedCount)},
	{name: "a holder without a grant does not count", m: twoOperators(0, namedCount)},
	{name: "a running holder without a grant is replaced", m: twoOperators(0, holderStays)},
	{name: "the holder is looked up by its labels", m: oneOperator(relabels|forced, holderByName),
		because: "the guard prevents changes of the labels of a pod that may run"},
	{name: "the holder is looked up by its labels, and no guard prevents changes of its labels", m: oneOperator(unguarded, holderByName)},
	{name: "no guard prevents changes of labels, and the object is recreated", m: oneOperator(unguarded|deletions, 0)},
	{name: "a new object does not adopt the pod that runs", m: twoOperators(deletions, adopts),
		because: "every pod with a grant counts, even if it is not the holder"},

	{name: "pods without the gate are created although an object exists", m: oneOperator(ungated, guard)},
	{name: "W14 pods without the gate are created while an object is being deleted", m: oneOperator(ungated|deletions, guardStays)},
	{name: "W14 pods that are created while an object is being deleted do not count", m: oneOperator(ungated|deletions, newcomersCount)},
	{name: "a new object starts a pod before every guard knows it", m: oneOperator(ungated, settles)},
	{name: "the pods are read before the object", m: oneOperator(ungated, objectReadFirst)},
	{name: "the pods are read before the object, and all have the gate", m: twoOperators(deletions, objectReadFirst),
		because: "the holder is still read after the object, and the object remains while a pod waits"},

	{name: "a Node is fenced when it is not Ready", m: twoNodes(outages, fenceNeedsWord)},
	{name: "a Node is fenced by the taint although it is Ready", m: twoNodes(outages|lateTaint, fenceNeedsSilence)},
	{name: "a pod on a fenced Node is released although it will start again", m: twoNodes(outages, fenceNeedsEnd)},
	{name: "a Node is read before its pods", m: twoNodes(outages, nodesReadLast)},
	{name: "a pod on a fenced Node loses grant and finalizer in one write", m: revoking(1, grantAndFinalizer)},
	{name: "a pod on a fenced Node has stopped when it has no grant", m: revoking(2, grantOnly)},

	{name: "two objects with overlapping selectors both start pods", m: twoObjects(0, rivalsStop|youngerYields)},
	{name: "of two objects with overlapping selectors the older starts pods", m: twoObjects(forced, rivalsStop),
		because: "the younger object observes the older one"},
	{name: "of two objects with overlapping selectors the older starts pods, and the younger has the earlier creationTimestamp", m: twoObjects(skew, rivalsStop)},

	{name: "an object is removed while its holder can still be granted", m: twoOperators(deletions, objectStaysForHolder)},
	{name: "the deletion of an object removes finalizers by UID alone", m: twoOperators(deletions|forced, looseBoundToVersion)},
	{name: "pods without an object are released one after another, without a lock", m: twoOperators(deletions, orphansWait)},

	{name: "the Lease is assigned without its resourceVersion", m: twoOperators(leases|successors, assignmentBound)},
	{name: "a Lease that has expired is assigned without its resourceVersion", m: oneOperator(leases, assignmentBound)},
	{name: "a pod without an agent is granted without a write of the Lease", m: twoOperators(leases|mixed|forced, grantFollowsLease)},
	{name: "the holder of the Lease replaces a holder for which the Lease was not written", m: twoOperators(leases|mixed, pendingStays)},
	{name: "a Lease that was recreated has no holder", m: oneOperator(leases|lostLeases, newLeaseWaits)},
	{name: "a holder of the Lease whose pod is missing does not count", m: oneOperator(leases|forced, unseenHolderCounts)},
	{name: "an agent starts its program again without a renewal", m: oneOperator(leases|crashes, renewsFirst)},

	{name: "a pod that no finalizer kept counts after it was force deleted", m: oneOperator(ungated|forced, lostUncounted)},
	{name: "a pod that a deleted object released counts after it was force deleted", m: oneOperator(deletions|forced, lostUncounted)},
}

func oneOperator(f fault, without rule) model {
	return model{pods: 2, nodes: 1, objects: 1, operators: 1, faults: f, without: without}
}

func twoOperators(f fault, without rule) model {
	return model{pods: 2, nodes: 1, objects: 1, operators: 2, faults: f, without: without}
}

func twoNodes(f fault, without rule) model {
	return model{pods: 2, nodes: 2, objects: 1, operators: 1, faults: f, without: without}
}

func twoObjects(f fault, without rule) model {
	return model{pods: 2, nodes: 1, objects: 2, operators: 2, faults: f, without: without}
}

// revoking returns a model with two nodes.
func revoking(operators int, how revokes) model {
	m := twoNodes(outages, 0)
	m.operators, m.revokes = operators, how
	return m
}

func TestModelNeedsItsRules(t *testing.T) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			x, at := row.m.explore(row.stuck)
			switch {
			case row.because == "" && at < 0:
				t.Fatalf("two programs never run at the same time in %d states", len(x.states))
			case row.because == "":
				t.Logf("two programs run at the same time:\n%s", x.story(at))
			case at >= 0:
				t.Fatalf("two programs run at the same time:\n%s", x.story(at))
			default:
				t.Logf("not needed: %s; %d states", row.because, len(x.states))
			}
			if !row.stuck {
				return
			}
			if at = x.deadEnd(); at < 0 {
				t.Fatal("no pod waits forever")
			}
			t.Logf("a pod waits forever:\n%s", x.story(at))
		})
	}
}
