package replicatedstatefulset

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// readAsToolsDo returns the situations whose statuses test/readiness reads as tools do.
func readAsToolsDo() map[golden.Situation]*facts.World {
	const current, moving, failed = "Current", "InProgress", "Failed"
	two := func(things ...thing) *facts.World { return worldOf(setOf(2, 1), things...) }
	follower := func() *podFixture { return pod(1).secondary().sequence("9") }
	made := with(func(w *facts.World) { w.Set.CreationTimestamp = metaTime(time.Hour) })
	paused := with(func(w *facts.World) { w.Set.Spec.Paused = true })
	stopped := with(func(w *facts.World) { w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0)) })
	noSecret := with(func(w *facts.World) { w.Missing = []string{"db-tls"} })
	refused := with(func(w *facts.World) { w.Refused = "patch statefulset rss-db: denied by policy" })
	excess := with(func(w *facts.World) { w.Excess = "it selects 101 ConfigMaps; the max is 100" })
	invalid := with(func(w *facts.World) {
		w.Invalid = "spec.replicas: Invalid value: 2147483647: may be at most 1000; lower it"
	})
	newerAway := []thing{pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), recordedSequence("rss-db-2", "10"), shown("")}
	return map[golden.Situation]*facts.World{
		{Sentence: "the set is healthy", Kstatus: current}:                                                two(pod(0).primary(), follower()),
		{Sentence: "the set is stopped by its spec", Kstatus: current}:                                    worldOf(setOf(0, 0)),
		{Sentence: "a new operator shows the previous status before its first queries", Kstatus: current}: two(pod(0).granted(), pod(1), shown("rss-db-0", "rss-db-1")),
		{Sentence: "the primary reports that it is degraded", Kstatus: current}:                           two(pod(0).status(191).granted(), pod(1).secondary()),
		{Sentence: "the set is paused and healthy", Kstatus: current, Argo: "Suspended"}:                  two(paused, pod(0).primary(), follower()),
		{Sentence: "the set is paused with an outdated member", Kstatus: failed, Argo: "Suspended"}:       two(paused, pod(0).primary(), follower().outdated()),
		{Sentence: "the set is paused without a primary", Kstatus: failed, Argo: "Suspended"}:             two(paused, pod(0).idle(), follower()),
		{Sentence: "a stopped set should start with too few members", Kstatus: failed}:                    worldOf(setOf(3, 1), replicas(2), stopped),
		{Sentence: "the first seed waits for pods", Kstatus: moving}:                                      worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending()),
		{Sentence: "the primary has crashed, and a failover is in progress", Kstatus: moving}:             two(pod(0).crashed(), follower(), lost(2*time.Second)),
		{Sentence: "an update is in progress", Kstatus: moving}:                                           two(pod(0).primary(), follower().outdated()),
		{Sentence: "a Secret is missing", Kstatus: moving}:                                                two(pod(0).primary(), follower(), noSecret),
		{Sentence: "the primary has not been Ready for seconds", Kstatus: moving}:                         two(pod(0).primary().unready(5*time.Second), follower()),
		{Sentence: "the primary has not been Ready for minutes", Kstatus: failed}:                         two(pod(0).primary().unready(2*time.Minute), follower()),
		{Sentence: "the node of the only member is unreachable", Kstatus: failed}:                         worldOf(setOf(1, 1), pod(0).granted().onNode(off), shown("rss-db-0")),
		{Sentence: "the node of the primary is unreachable", Kstatus: failed}:                             two(pod(0).granted().onNode(off), pod(1).secondary(), shown("rss-db-0")),
		{Sentence: "the newest copy is missing", Kstatus: failed}:                                         two(newerAway...),
		{Sentence: "the newest copy is unknown", Kstatus: failed}:                                         two(pod(0).idle().sequence("x"), pod(1).idle().sequence("8")),
		{Sentence: "the newest copy cannot be started", Kstatus: failed}:                                  two(pod(0).idle().sequence("9").failures(1, "seed", 3, false), pod(1).idle().sequence("8")),
		{Sentence: "a primary does not stop", Kstatus: failed}:                                            two(pod(0).primary(), pod(1).failures(1, "stop", 0, false).primary()),
		{Sentence: "a secondary is unresponsive", Kstatus: failed}:                                        two(pod(0).primary(), follower().hangs(time.Minute)),
		{Sentence: "a foreign pod has the name of a member", Kstatus: failed}:                             two(pod(0).primary(), pod(1).but(func(w *facts.World) { w.Members[1].Pod.Annotations = nil }), made),
		{Sentence: "a policy refuses a write", Kstatus: failed}:                                           two(pod(0).primary(), follower(), refused),
		{Sentence: "too many rules are selected", Kstatus: failed}:                                        two(pod(0).primary(), follower(), excess),
		{Sentence: "a member is parked", Kstatus: current}:                                                two(pod(0).primary(), pod(1).status(1), parkedNow(1)),
		{Sentence: "a primary waits to be parked", Kstatus: moving}:                                       two(pod(0).primary().sequence("9"), pod(1).pending(), toBeParked(0)),
		{Sentence: "the newest copy is parked", Kstatus: failed}:                                          two(pod(0).idle().sequence("8"), follower(), parkedNow(1)),
		{Sentence: "the spec is invalid", Kstatus: failed}:                                                two(pod(0).primary(), follower(), invalid),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	for situation, w := range readAsToolsDo() {
		p := rules.Decide(w)
		set := w.Set.DeepCopy()
		set.Kind, set.APIVersion = "ReplicatedStatefulSet", v1alpha1.GroupVersion.String()
		set.Status = status.Summarize(&p)
		situation.Check(t, "replicatedstatefulset", set)
	}
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "ReplicatedStatefulSet", status.Effects)
}
