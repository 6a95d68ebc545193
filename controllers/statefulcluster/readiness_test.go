package statefulcluster

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// readAsToolsDo returns the situations whose statuses the tests in test/readiness read, as tools
// do.
func readAsToolsDo() map[golden.Situation]*facts.World {
	const current, moving, failed = "Current", "InProgress", "Failed"
	down := func(id string, d time.Duration) *podFixture { return pod(id).on("n-" + id).unreadyFor(d) }
	never := set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Replacement.UnreadySeconds, s.Replacement.StartupSeconds, s.Replacement.PendingSeconds = new(int32(0)), new(int32(0)), new(int32(0))
	})
	foreign := with(func(w *facts.World) { w.Foreign = []string{"stray"} })
	theirs := with(func(w *facts.World) { w.Budget.OwnerReferences = nil })
	unpullable := pod("c").on("n3").starting().waiting("ImagePullBackOff")
	return map[golden.Situation]*facts.World{
		{Sentence: "all members are available", Kstatus: current}:                                seen(set("db"), a(), b(), c()),
		{Sentence: "replicas is 0", Kstatus: current}:                                            seen(set("db").replicas(0)),
		{Sentence: "a partition keeps members at the old revision", Kstatus: current}:            seen(set("db").rolling(v1alpha1.RollingUpdate{Partition: 2}), a(), oldB(), oldC(), oldImage()),
		{Sentence: "OnDelete keeps members at the old revision", Kstatus: current}:               seen(set("db").onDelete(), a(), oldB(), oldC(), oldImage()),
		{Sentence: "pods that are not members match the selector", Kstatus: current}:             seen(set("db"), a(), b(), c(), foreign),
		{Sentence: "a new set has no available members", Kstatus: moving}:                        seen(set("db"), nowNeverReady, starting("a"), starting("b"), starting("c")),
		{Sentence: "a scale-up is in progress", Kstatus: moving}:                                 seen(set("db"), a()),
		{Sentence: "an update is in progress", Kstatus: moving}:                                  seen(set("db"), oldA(), oldB(), c(), oldImage()),
		{Sentence: "a node is lost, and its member is being replaced", Kstatus: moving}:          seen(set("db"), a().nodeGone(), b(), c()),
		{Sentence: "two nodes are lost, and one replacement is pending", Kstatus: moving}:        seen(set("db"), a().nodeGone(), b().nodeGone(), c()),
		{Sentence: "one member has been unready for a minute", Kstatus: moving}:                  seen(set("db"), down("a", time.Minute), b(), c()),
		{Sentence: "no member is available", Kstatus: failed}:                                    seen(set("db"), down("a", time.Second), down("b", time.Second), down("c", time.Second)),
		{Sentence: "a member has been unready for long, and is never replaced", Kstatus: failed}: seen(never, down("a", 10*time.Minute), b(), c()),
		{Sentence: "the new image cannot be pulled", Kstatus: failed}:                            seen(set("db"), nowNeverReady, oldA(), oldB(), unpullable, oldImage()),
		{Sentence: "the new version keeps crashing", Kstatus: failed}:                            seen(set("db"), nowUnproven, oldA(), oldB(), pod("c").on("n3").readyFor(time.Second).restarted(4), oldImage()),
		{Sentence: "the quota is used up", Kstatus: failed}:                                      seen(set("db"), a(), b(), refused(facts.ReasonMissing, "create pod db-f1: exceeded quota", time.Minute)),
		{Sentence: "the expansion of a claim is refused", Kstatus: failed}:                       seen(set("db"), a(), b(), c(), refused(facts.ReasonExpand, "no expansion", time.Minute)),
		{Sentence: "a budget of another owner has its name", Kstatus: failed}:                    seen(set("db"), a(), b(), c(), theirs),
		{Sentence: "the spec is invalid", Kstatus: failed}:                                       seen(set("d.b"), a(), b(), c()),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	for situation, w := range readAsToolsDo() {
		set := w.Set.DeepCopy()
		set.Kind, set.APIVersion = "StatefulCluster", v1alpha1.GroupVersion.String()
		set.Status = told(w)
		situation.Check(t, "statefulcluster", set)
	}
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "StatefulCluster", status.Effects)
}
