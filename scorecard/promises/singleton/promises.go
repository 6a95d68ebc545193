// Package singleton contains the promises of StatefulSingleton.
package singleton

import (
	"context"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Promises lists the promises of this kind. Each of them fails if two programs of one application
// ran at the same time, except the last one, which requires that.
var Promises = []kit.Promise{
	// It takes longest. The others run at the same time.
	kit.Together("S14 a program that crashes repeatedly keeps the grant", crashLoop),
	kit.Together("S7 the first pod starts, and is reported", firstPod),
	kit.Scribed(kit.Together("S8 a rollout with surge hands over, and ends", surgeRollout)),
	kit.Together("S10 a drained pod starts on another node", drained),
	kit.Core(kit.Together("S42 a drained pod is replaced before it is deleted", drainedFirst)),
	kit.Together("S43 a pod that need not leave its node is returned to its owner", givenBack),
	kit.Scribed(kit.Together("S11 Recreate, no surge and a StatefulSet hand over", otherOwners)),
	kit.Scribed(kit.Together("S12 the next one waits for the end of a slow shutdown", slowShutdown)),
	kit.Together("S13 a handover that takes too long is reported once, and ends", timeout),
	kit.Together("S13 onTimeout DeleteOld deletes the blocking pod", timeoutDeletes),
	kit.Together("S13 onTimeout DeleteOld keeps a pod that existed before the object", timeoutSpares),
	kit.Together("S14 a failing side container does not end a grant", brokenSide),
	kit.Together("S14 a pod whose program never started loses the grant", neverStarted),
	kit.Beside("W7 obstacles of the pod of a StatefulSingleton are reported with the command that helps", reportsObstacles),
	kit.Together("S14 a script without a shell is reported", noShell),
	kit.Scribed(kit.Together("S15 of three replicas one runs, and one other takes over", replicas)),
	kit.Core(kit.Together("S16 a pod that existed before the object blocks, and is reported", unmanaged)),
	{Name: "V14 three programs that ran before the object are reported, with the command that helps", Faults: true, Site: kit.SharedSite, Run: threeFromBefore},
	kit.Together("V14 pods of a DaemonSet run one after another", daemonSet),
	kit.Together("V14 pods of a Parallel StatefulSet run one after another", parallelSet),
	kit.Together("V14 a native sidecar that stops late blocks the next pod", nativeSidecar),
	kit.Together("V14 a static pod blocks until its manifest is removed", staticPod),
	kit.Together("S17 a pod without an owner waits like others", orphan),
	kit.Together("S18 arguments are passed unchanged", arguments),
	kit.Together("S18 a program without a command is refused", noCommand),
	kit.Together("S19 the program is process 1, and a waiting pod ends immediately", process1),
	kit.Together("S19 a container that restarts keeps the grant", restarts),
	kit.Together("S20 probes do not affect a waiting program", probes),
	kit.Together("S20 in Init mode no container of a waiting pod runs", nothingRuns),
	kit.Together("S21 side containers do not wait, and images need no shell", sideContainers),
	kit.Together("S21 a restricted namespace accepts the gate", restrictedNamespace),
	kit.Together("W16 the gate counts against no limit of storage", smallStorage),
	kit.Together("S22 the next pod is on another node if possible", placement),
	kit.Together("S22 a volume of one node is handed over", oneNodeVolume),
	kit.Scribed(kit.Together("S23 a pod deleted by force has stopped before the next one starts", deletedByForce)),
	kit.Together("S25 the pods of a deleted object are released one after another", objectDeleted),
	kit.Together("W14 a rollout continues under an object that is being deleted", deletedInRollout),
	kit.Together("S25 release-now releases all pods", releaseNow),
	kit.Together("S25 a namespace with waiting pods can be deleted", namespaceDeleted),
	kit.Together("S27 the status reports that there are no pods", noPods),
	alone(kit.OperatorSite, "S16 an outage of the webhook blocks only pods of the object", webhookDown),
	kit.Core(alone(kit.NodeSite, "S23 a node without its kubelet blocks until it is declared off", nodeOff)),
	kit.Core(alone(kit.NodeSite, "S50 a pod on a node that is cut off is replaced when it has not renewed the Lease", lostByLease)),
	alone(kit.NodeSite, "S50 pods on a node that is off, and on one that does not reach the API server, are replaced", failedNodes),
	alone(kit.NodeSite, "S50 a program whose agent renews the Lease continues without the kubelet, and is not replaced", withoutKubelet),
	{Name: "S50 a frozen program is replaced, and ends when it continues", Faults: true, Site: kit.NodeSite, Run: frozenByNode},
	{Name: "S50 a program on a node that is paused for a minute is replaced, and ends when it continues", Faults: true, Site: kit.NodeSite, Run: pausedNode},
	alone(kit.NodeSite, "S50 fencing by a Lease is switched on and off while a program runs", switched),
	alone(kit.OperatorSite, "S50 a program continues without the operator, and is succeeded by the pod that the Lease names", withoutOperator),
	alone(kit.NodeSite, "S53 a standby takes over from a revision in a crash loop, and keeps running", crashLoopHandsOver),
	alone(kit.NodeSite, "S53 two pods in a crash loop do not alternate", crashLoopsAlternate),
	alone(kit.OperatorSite, "S49 an upgrade of the operator restarts no program, and the next pod gets its gate", operatorUpgraded),
	alone(kit.NodeSite, "S48 a pod mounts the gate if all Nodes support it, and gets a copy otherwise", mountsGate),
	kit.Core(alone(kit.OperatorSite, "S24 an operator that crashes in a handover is succeeded", operatorDiesInHandover)),
	alone(kit.NodeSite, "S9 no overlap over mixed handovers", soak),
	{Name: "S9 the overlap probe detects overlaps without the gate", Site: kit.NodeSite, Faults: true, Run: soakWithoutGate},
}

// alone returns a promise whose programs must not overlap. Promises of
// its site run one after another.
func alone(site kit.Site, name string, keep func(context.Context, *kit.Cluster)) kit.Promise {
	return kit.Promise{Name: name, Faults: true, Site: site, Run: kit.Witnessed(keep)}
}
