package promises

import "context"

// ExtendedStatefulSet are the promises of this kind. What they say of capacity,
// claims and labels at any moment, a watch on the pods tells, and no status.
var ExtendedStatefulSet = []Promise{
	beside("E20 E21 twelve bad revisions side by side are taken back", badRevisionsCoexist),
	beside("E20 E21 twelve bad revisions ordinal by ordinal are taken back", badRevisionsPerOrdinal),
	beside("E2 E3 E4 E19 two canaries prove a version beside the old one", canariesCoexist),
	beside("E4 E19 two canaries prove a version ordinal by ordinal", canariesPerOrdinal),
	beside("E4 the active Service is switched in one write", activeService),
	beside("E5 E6 E7 E8 a failing version stays until a lower one can go", failingVersions),
	beside("E20 retryCount allows so many more attempts", retries),
	beside("E22 an upgrade waits until the old version is Ready", waitsUntilReady),
	beside("E4 an edit in an upgrade supersedes it", supersedes),
	beside("E9 going back to a version that lives promotes it", goesBack),
	beside("E26 claims follow their ordinals through five versions", claimsFollow),
	{Name: "E27 a volume moves between two nodes without being held twice", Faults: true, Together: true, Keep: volumeMoves},
	beside("E33 claims grow, and other changes of claims are refused", claimTemplatesGrow),
	beside("E23 E24 jobs run before and after an upgrade", jobsRun),
	beside("E23 E24 a failed job stops an upgrade, or not when told", jobsFail),
	beside("E14 E16 changed ConfigMaps and Secrets restart pods in place", configRestarts),
	beside("E14 ten edits in a second make one restart", configStorm),
	beside("E18 a missing ConfigMap is told of, and awaited", configMissing),
	beside("E13 E15 E17 a deleted object leaves the user's objects alone", deletionSpares),
	beside("E13 E17 a namespace with tracked objects can be deleted", trackedNamespaceDeleted),
	beside("E28 E29 E30 zones have pods of their own, upgraded one after another", zonesUpgrade),
	beside("E31 zones are added, removed and reordered", zonesChange),
	beside("E11 E12 replica rules hold on every path", replicaRules),
	beside("E34 a probe chooses the active pods", activePods),
	beside("E34 a single active pod is never two", singleActive),
	beside("E32 a pod that dies in an upgrade keeps its version", podDiesInUpgrade),
	beside("E32 a broken start is corrected without a hand on its pods", brokenStart),
	{Name: "E14 an edit while the operator is away is found", Keep: configWhileAway},
	{Name: "E25 E35 an operator that dies in upgrades changes nothing of their end", Keep: operatorDiesInUpgrades},
	{Name: "E32 a node that dies in an upgrade is taken back from", Faults: true, Keep: nodeDiesInUpgrade},
}

// beside is a promise that can be tried beside others, on any cluster.
func beside(name string, keep func(context.Context, *Cluster) error) Promise {
	return Promise{Name: name, Together: true, Keep: keep}
}
