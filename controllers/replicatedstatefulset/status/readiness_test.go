package status_test

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// readAsToolsDo returns the situations whose statuses test/readiness reads as tools do.
func readAsToolsDo() map[golden.Situation]*facts.World {
	const current, moving, failed = "Current", "InProgress", "Failed"
	two := func(things ...fixture.Thing) *facts.World { return fixture.WorldOf(fixture.SetOf(2, 1), things...) }
	follower := func() *fixture.PodFixture { return fixture.Pod(1).Secondary().Sequence("9") }
	made := fixture.With(func(w *facts.World) { w.Set.CreationTimestamp = fixture.MetaTime(time.Hour) })
	paused := fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true })
	stopped := fixture.With(func(w *facts.World) { w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0)) })
	noSecret := fixture.With(func(w *facts.World) { w.MissingSecrets = []string{"db-tls"} })
	refused := fixture.With(func(w *facts.World) { w.Refused = "patch statefulset rss-db: denied by policy" })
	excess := fixture.With(func(w *facts.World) { w.WhyRulesIgnored = "it selects 101 ConfigMaps; the max is 100" })
	invalid := fixture.With(func(w *facts.World) {
		w.Invalid = "spec.replicas: Invalid value: 2147483647: may be at most 1000; lower it"
	})
	notPermitted := fixture.With(func(w *facts.World) {
		w.Fencing.Problem = facts.Notice{Reason: v1alpha1.ReasonFencingNotPermitted, Message: "fencing by a Lease is not permitted"}
	})
	newerAway := []fixture.Thing{fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.RecordedSequence("rss-db-2", "10"), shown("")}
	return map[golden.Situation]*facts.World{
		{Sentence: "the set is healthy", Kstatus: current}:                                                two(fixture.Pod(0).Primary(), follower()),
		{Sentence: "the set is stopped by its spec", Kstatus: current}:                                    fixture.WorldOf(fixture.SetOf(0, 0)),
		{Sentence: "a new operator shows the previous status before its first queries", Kstatus: current}: two(fixture.Pod(0).WithGranted(), fixture.Pod(1), shown("rss-db-0", "rss-db-1")),
		{Sentence: "the primary reports that it is degraded", Kstatus: current}:                           two(fixture.Pod(0).Status(191).WithGranted(), fixture.Pod(1).Secondary()),
		{Sentence: "the set is paused and healthy", Kstatus: current, Argo: "Suspended"}:                  two(paused, fixture.Pod(0).Primary(), follower()),
		{Sentence: "the set is paused with an outdated member", Kstatus: failed, Argo: "Suspended"}:       two(paused, fixture.Pod(0).Primary(), follower().Outdated()),
		{Sentence: "the set is paused without a primary", Kstatus: failed, Argo: "Suspended"}:             two(paused, fixture.Pod(0).Idle(), follower()),
		{Sentence: "a stopped set should start with too few members", Kstatus: failed}:                    fixture.WorldOf(fixture.SetOf(3, 1), fixture.Replicas(2), stopped),
		{Sentence: "the first seed waits for pods", Kstatus: moving}:                                      fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Pending()),
		{Sentence: "the primary has crashed, and a failover is in progress", Kstatus: moving}:             two(fixture.Pod(0).Crashed(), follower(), fixture.Lost(2*time.Second)),
		{Sentence: "an update is in progress", Kstatus: moving}:                                           two(fixture.Pod(0).Primary(), follower().Outdated()),
		{Sentence: "a Secret is missing", Kstatus: moving}:                                                two(fixture.Pod(0).Primary(), follower(), noSecret),
		{Sentence: "the primary has not been Ready for seconds", Kstatus: moving}:                         two(fixture.Pod(0).Primary().Unready(5*time.Second), follower()),
		{Sentence: "the primary has not been Ready for minutes", Kstatus: failed}:                         two(fixture.Pod(0).Primary().Unready(2*time.Minute), follower()),
		{Sentence: "the node of the only member is unreachable", Kstatus: failed}:                         fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).WithGranted().OnNode(fixture.Off), shown("rss-db-0")),
		{Sentence: "the node of the primary is unreachable", Kstatus: failed}:                             two(fixture.Pod(0).WithGranted().OnNode(fixture.Off), fixture.Pod(1).Secondary(), shown("rss-db-0")),
		{Sentence: "the node of a primary with a Lease is unreachable", Kstatus: moving}:                  two(fixture.Pod(0).Leased(4).Holds(time.Second).Renewed().WithGranted().InEpoch(4).OnNode(fixture.Off), fixture.Pod(1).Leased(0).Secondary(), shown("rss-db-0")),
		{Sentence: "fencing by a Lease is not permitted", Kstatus: failed}:                                two(fixture.Pod(0).Primary(), follower(), notPermitted),
		{Sentence: "the newest copy is missing", Kstatus: failed}:                                         two(newerAway...),
		{Sentence: "the newest copy is unknown", Kstatus: failed}:                                         two(fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle().Sequence("8")),
		{Sentence: "the newest copy cannot be started", Kstatus: failed}:                                  two(fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 3, false), fixture.Pod(1).Idle().Sequence("8")),
		{Sentence: "a primary does not stop", Kstatus: failed}:                                            two(fixture.Pod(0).Primary(), fixture.Pod(1).Failures(1, "stop", 0, false).Primary()),
		{Sentence: "a secondary is unresponsive", Kstatus: failed}:                                        two(fixture.Pod(0).Primary(), follower().Hangs(time.Minute)),
		{Sentence: "a foreign pod has the name of a member", Kstatus: failed}:                             two(fixture.Pod(0).Primary(), fixture.Pod(1).But(func(w *facts.World) { w.Members[1].Pod.Annotations = nil }), made),
		{Sentence: "a policy refuses a write", Kstatus: failed}:                                           two(fixture.Pod(0).Primary(), follower(), refused),
		{Sentence: "too many rules are selected", Kstatus: failed}:                                        two(fixture.Pod(0).Primary(), follower(), excess),
		{Sentence: "a member is parked", Kstatus: current}:                                                two(fixture.Pod(0).Primary(), fixture.Pod(1).Status(1), fixture.ParkedNow(1)),
		{Sentence: "a primary waits to be parked", Kstatus: moving}:                                       two(fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Pending(), fixture.ToBeParked(0)),
		{Sentence: "the newest copy is parked", Kstatus: failed}:                                          two(fixture.Pod(0).Idle().Sequence("8"), follower(), fixture.ParkedNow(1)),
		{Sentence: "the spec is invalid", Kstatus: failed}:                                                two(fixture.Pod(0).Primary(), follower(), invalid),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	var all golden.Statuses
	for situation, w := range readAsToolsDo() {
		p := rules.Decide(w)
		set := w.Set.DeepCopy()
		set.Kind, set.APIVersion = "ReplicatedStatefulSet", v1alpha1.GroupVersion.String()
		set.Status = status.Summarize(&p)
		all.Add(t, situation, set)
	}
	all.Check(t, "replicatedstatefulset")
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "ReplicatedStatefulSet", status.Effects)
}
