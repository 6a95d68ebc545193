// Package statefulcluster contains the promises of StatefulCluster.
package statefulcluster

import (
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Promises lists the promises of this kind.
var Promises = []kit.Promise{
	kit.Beside("SC-8 a retired name is never reused, and its claim is kept", namesAreUsedOnce),
	kit.Beside("SC-22 SC-40 an image changes in place on a real kubelet", inPlace),
	kit.Beside("SC-22 any other change recreates the pod on the same data", recreates),
	kit.Beside("a resize keeps the pod", resizes),
	kit.Beside("claims grow without a restart", claimsGrow),
	{Name: "SC-14 a member that cannot be scheduled is replaced", Site: kit.NodeSite, Run: pendingIsReplaced},
	kit.Beside("SC-19 deletion leaves the claims by default, and deletes them on request", deletion),
	kit.Beside("SC-39 a force-deleted pod gets a successor with a new name", forceDeleted),
	kit.Beside("SC-41 a bad image costs no data, and the corrected one repairs all members", badImage),
	kit.Beside("SC-48 a template whose pods are refused stops no member, and a full quota blocks no update", refusedPod),
	kit.Core(kit.Beside("V9 a template whose pods become Ready and crash costs no data", crashingTemplate)),
	{Name: "SC-30 SC-42 an operator that crashes in an update is succeeded, and the update completes", Site: kit.OperatorSite, Run: operatorDies},
	{Name: "SC-32 the operator manages only its watched namespaces", Site: kit.OperatorSite, Run: namespacesAreKept},
	{Name: "SC-43 SC-46 a drain removes no member before a new one is available", Site: kit.NodeSite, Run: replacesFirst},
	{Name: "SC-37 an out-of-service node's members are replaced", Site: kit.NodeSite, Run: outOfService},
	kit.Core(kit.Promise{Name: "SC-12 SC-36 a node that is permanently unreachable does not block its members", Site: kit.NodeSite, Faults: true, Run: nodeCut}),
	kit.Core(kit.Promise{Name: "W1 SC-53 a drain of the operator's leader and of a member keeps the member", Site: kit.OperatorSite, Run: drainsLeader}),
	{Name: "W2 SC-52 SC-55 lights out: all nodes of a set off and on", Site: kit.NodeSite, Faults: true, Run: allMembersDark},
	{Name: "W2 SC-54 a Node object that is deleted and recreated costs no member", Site: kit.NodeSite, Faults: true, Run: nodeObjectReturns},
	kit.Beside("W7 obstacles of a member of a StatefulCluster are reported with the command that helps", reportsObstacles),
	kit.Beside("W2 SC-53 a member that its kubelet evicts returns with Keep", evictedByKubelet),
	{Name: "SC-38 half of the nodes lost at once does not empty the set", Site: kit.NodeSite, Faults: true, Run: halfLost},
}
