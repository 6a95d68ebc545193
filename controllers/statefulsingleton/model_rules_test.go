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
	{name: "the second write goes to the pod's name, not to its UID", m: twoOperators(forced, grantBoundToUID), stuck: true,
		because: "the text names the UID, and the gate of another pod refuses it; its finalizer stays on the wrong pod"},
	{name: "the second write goes to the pod's name, and the gate takes any grant", m: twoOperators(forced, grantBoundToUID|gateAsksForUID)},
	{name: "the second write is not bound to the pod's resourceVersion", m: twoOperators(forced|crashes|copies, grantBoundToVersion),
		because: "the API server refuses it for a pod that is being deleted, and a living holder stays the holder"},
	{name: "the same, and a kubelet refuses a pod that waits", m: twoOperators(refusals, grantBoundToVersion)},
	{name: "the grant brings no finalizer", m: oneOperator(forced, grantBringsFinalizer)},
	{name: "pods without the gate get no finalizer", m: oneOperator(forced|ungated, protects)},

	{name: "a pod has stopped when its containers are terminated", m: oneOperator(crashes, stoppedNeedsPhase)},
	{name: "a pod has stopped when its phase is Failed", m: oneOperator(outages, stoppedNeedsContainers)},
	{name: "a pod has stopped when both are so, though the kubelet did not say Failed", m: oneOperator(outages|crashes, stoppedNeedsKubelet)},
	{name: "a pod without the gate has stopped when it has no container statuses", m: oneOperator(refusals|ungated, stoppedNeedsStatuses)},
	{name: "a pod has stopped when the cache has none", m: oneOperator(0, liveRead)},
	{name: "no one deletes a pod that was granted and then refused by its kubelet", m: oneOperator(refusals, refusedAreDeleted), stuck: true,
		because: "it only blocks: the kubelet tells of containers when the pod is deleted"},
	{name: "a holder is granted though its phase has ended", m: twoOperators(refusals, endedWaitsNoMore)},

	{name: "a gate takes a grant for another UID", m: oneOperator(copies, gateAsksForUID)},
	{name: "pods without the gate do not count", m: oneOperator(ungated, ungatedCount)},
	{name: "relabelled pods do not count", m: oneOperator(relabels|deletions, relabelledCount)},
	{name: "only the holder counts, not who has a grant or the finalizer", m: oneOperator(deletions, grantedCount)},
	{name: "a holder without a grant does not count", m: twoOperators(0, namedCount)},
	{name: "a living holder without a grant is withdrawn", m: twoOperators(0, holderStays)},
	{name: "the holder is looked up by its labels", m: oneOperator(relabels|forced, holderByName),
		because: "the guard refuses to relabel a pod that may run"},
	{name: "the holder is looked up by its labels, and no guard refuses to relabel it", m: oneOperator(unguarded, holderByName)},
	{name: "no guard refuses to relabel, and the object is made again", m: oneOperator(unguarded|deletions, 0)},
	{name: "a new object does not adopt the pod that runs", m: twoOperators(deletions, adopts),
		because: "a pod with a grant counts, holder or not"},

	{name: "pods without the gate are made although an object is there", m: oneOperator(ungated, guard)},
	{name: "W14 pods without the gate are made while an object is being deleted", m: oneOperator(ungated|deletions, guardStays)},
	{name: "W14 pods that are made while an object is being deleted do not count", m: oneOperator(ungated|deletions, newcomersCount)},
	{name: "a new object starts a pod before every guard knows it", m: oneOperator(ungated, settles)},
	{name: "the pods are read before the object", m: oneOperator(ungated, objectReadFirst)},
	{name: "the pods are read before the object, and all have the gate", m: twoOperators(deletions, objectReadFirst),
		because: "the holder is still read after the object, and an object stays while a pod waits"},

	{name: "a Node is fenced when it is not Ready", m: twoNodes(outages, fenceNeedsWord)},
	{name: "a Node is fenced by the taint though it is Ready", m: twoNodes(outages|lateTaint, fenceNeedsSilence)},
	{name: "a pod on a fenced Node is released though it will start again", m: twoNodes(outages, fenceNeedsEnd)},
	{name: "a Node is read before its pods", m: twoNodes(outages, nodesReadLast)},
	{name: "a pod on a fenced Node loses grant and finalizer in one write", m: revoking(1, grantAndFinalizer)},
	{name: "a pod on a fenced Node has stopped when it has no grant", m: revoking(2, grantOnly)},

	{name: "two objects with overlapping selectors both start pods", m: twoObjects(0, rivalsStop|youngerYields)},
	{name: "of two objects with overlapping selectors the older starts pods", m: twoObjects(forced, rivalsStop),
		because: "the younger sees the older"},
	{name: "the same, and the younger has the earlier creationTimestamp", m: twoObjects(skew, rivalsStop)},

	{name: "an object goes while its holder can still be granted", m: twoOperators(deletions, objectStaysForHolder)},
	{name: "the end of an object takes finalizers off by UID alone", m: twoOperators(deletions|forced, looseBoundToVersion)},
	{name: "pods without an object are let go one after another, without a lock", m: twoOperators(deletions, orphansWait)},

	{name: "a pod that no finalizer kept counts after it was force deleted", m: oneOperator(ungated|forced, lostUncounted)},
	{name: "a pod that a deleted object let go counts after it was force deleted", m: oneOperator(deletions|forced, lostUncounted)},
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
				t.Fatalf("no two programs run at once in any of %d states", len(x.states))
			case row.because == "":
				t.Logf("two programs run at once:\n%s", x.story(at))
			case at >= 0:
				t.Fatalf("two programs run at once:\n%s", x.story(at))
			default:
				t.Logf("not needed: %s; %d states", row.because, len(x.states))
			}
			if !row.stuck {
				return
			}
			if at = x.deadEnd(); at < 0 {
				t.Fatal("no pod waits for ever")
			}
			t.Logf("a pod waits for ever:\n%s", x.story(at))
		})
	}
}
