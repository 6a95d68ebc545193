// Package extended contains the promises of ExtendedStatefulSet.
package extended

import (
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Promises lists the promises of this kind. A watch on the pods checks their statements
// about capacity, claims and labels at any moment, not the status.
var Promises = []kit.Promise{
	kit.Long(kit.Beside("E20 E21 twelve bad revisions with pods of their own are rolled back", badRevisionsCoexist)), // not at the same time as the next one: each has twelve sets
	kit.Beside("E2 E3 E4 E19 two canaries test a version next to the old one", canariesCoexist),
	kit.Beside("E4 E19 two canaries test a version ordinal by ordinal", canariesPerOrdinal),
	kit.Beside("E4 the active Service is switched in one write", activeService),
	kit.Beside("E5 E6 E7 E8 a failing version is kept until a lower one can be deleted", failingVersions),
	kit.Beside("V6 obstacles to the creation or readiness of pods are reported, and cleared when they are resolved", saysWhy),
	kit.Beside("W17 obstacles of pods of a first version are reported with the command that helps", reportsObstacles),
	kit.Beside("E20 retryCount sets the number of additional attempts", retries),
	kit.Beside("E22 an upgrade waits until the old version is Ready", waitsUntilReady),
	kit.Beside("E4 an edit in an upgrade supersedes it", supersedes),
	kit.Beside("E9 a rollback to a running version promotes it", goesBack),
	kit.Long(kit.Beside("E26 claims follow their ordinals through five versions", claimsFollow)),
	{Name: "E27 a volume moves between two nodes and is never attached twice", Faults: true, Site: kit.SharedSite, Run: volumeMoves},
	kit.Beside("E33 claims grow, and other changes of claims are refused", claimTemplatesGrow),
	kit.Beside("E23 E24 jobs run before and after an upgrade", jobsRun),
	kit.Beside("E23 E24 a failed job stops an upgrade unless it is ignored", jobsFail),
	kit.Beside("E36 E37 E38 E39 a good canary waits for its job and its approval", approvals),
	kit.Beside("E14 E16 changed ConfigMaps and Secrets restart pods in place", configRestarts),
	kit.Beside("E14 ten edits in a second cause one restart", configStorm),
	kit.Beside("W20 E55 pods with old contents of a recreated immutable ConfigMap are listed", recreatedImmutable),
	kit.Beside("W8 E54 a set is scaled down while a quota refuses a remaining pod", scaledDownWithoutQuota),
	kit.Beside("E18 a missing ConfigMap is reported, and the pods wait for it", configMissing),
	kit.Beside("E13 E15 E17 the objects of the user are kept when the set is deleted", deletionSpares),
	kit.Beside("E13 E17 a namespace with tracked objects can be deleted", trackedNamespaceDeleted),
	kit.Beside("E28 E29 E30 zones have their own pods, upgraded one after another", zonesUpgrade),
	kit.Beside("E31 zones are added, removed and reordered", zonesChange),
	kit.Beside("E11 E12 replica rules apply to every path", replicaRules),
	kit.Beside("E40 E41 the last serving pod is not evicted while two versions exist", lastOneStays),
	kit.Beside("E34 a probe chooses the active pods", activePods),
	kit.Beside("E34 a single active pod is never duplicated", singleActive),
	kit.Beside("E32 a pod that fails in an upgrade keeps its version", podDiesInUpgrade),
	kit.Beside("E32 a failed start is corrected without manual changes of its pods", brokenStart),
	kit.Beside("E20 E21 twelve bad revisions ordinal by ordinal are rolled back", badRevisionsPerOrdinal),
	{Name: "E14 an edit while the operator is down is detected", Site: kit.OperatorSite, Run: configWhileAway},
	{Name: "E25 E35 an operator that crashes in upgrades does not change their result", Site: kit.OperatorSite, Run: operatorDiesInUpgrades},
	{Name: "V5 a canary is not rolled back for time in which the operator was stopped", Site: kit.OperatorSite, Faults: true, Run: frozenCanary},
	{Name: "E32 ordinals are returned from a node that fails in an upgrade", Site: kit.NodeSite, Faults: true, Run: nodeDiesInUpgrade},
}
