package status_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// readAsToolsDo returns the situations whose statuses the tests in test/readiness read, as tools
// do.
func readAsToolsDo() map[golden.Situation]*facts.World {
	const current, moving, failed = "Current", "InProgress", "Failed"
	down := func(id string, d time.Duration) *fixture.PodFixture {
		return fixture.Pod(id).On("n-" + id).UnreadyFor(d)
	}
	never := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Replacement.UnreadySeconds, s.Replacement.StartupSeconds, s.Replacement.PendingSeconds = new(int32(0)), new(int32(0)), new(int32(0))
	})
	foreign := fixture.With(func(w *facts.World) { w.Foreign = []string{"stray"} })
	theirs := fixture.With(func(w *facts.World) { w.Budget.OwnerReferences = nil })
	unpullable := fixture.Pod("c").On("n3").Starting().Waiting("ImagePullBackOff")
	return map[golden.Situation]*facts.World{
		{Sentence: "all members are available", Kstatus: current}:                                fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()),
		{Sentence: "replicas is 0", Kstatus: current}:                                            fixture.Seen(fixture.Set("db").Replicas(0)),
		{Sentence: "a partition keeps members at the old revision", Kstatus: current}:            fixture.Seen(fixture.Set("db").Rolling(v1alpha1.RollingUpdate{Partition: 2}), fixture.A(), fixture.OldB(), fixture.OldC(), fixture.OldImage()),
		{Sentence: "OnDelete keeps members at the old revision", Kstatus: current}:               fixture.Seen(fixture.Set("db").OnDelete(), fixture.A(), fixture.OldB(), fixture.OldC(), fixture.OldImage()),
		{Sentence: "pods that are not members match the selector", Kstatus: current}:             fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), foreign),
		{Sentence: "a new set has no available members", Kstatus: moving}:                        fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.Starting("a"), fixture.Starting("b"), fixture.Starting("c")),
		{Sentence: "a scale-up is in progress", Kstatus: moving}:                                 fixture.Seen(fixture.Set("db"), fixture.A()),
		{Sentence: "an update is in progress", Kstatus: moving}:                                  fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.C(), fixture.OldImage()),
		{Sentence: "a node is lost, and its member is being replaced", Kstatus: moving}:          fixture.Seen(fixture.Set("db"), fixture.A().NodeGone(), fixture.B(), fixture.C()),
		{Sentence: "two nodes are lost, and one replacement is pending", Kstatus: moving}:        fixture.Seen(fixture.Set("db"), fixture.A().NodeGone(), fixture.B().NodeGone(), fixture.C()),
		{Sentence: "one member has been unready for a minute", Kstatus: moving}:                  fixture.Seen(fixture.Set("db"), down("a", time.Minute), fixture.B(), fixture.C()),
		{Sentence: "no member is available", Kstatus: failed}:                                    fixture.Seen(fixture.Set("db"), down("a", time.Second), down("b", time.Second), down("c", time.Second)),
		{Sentence: "a member has been unready for long, and is never replaced", Kstatus: failed}: fixture.Seen(never, down("a", 10*time.Minute), fixture.B(), fixture.C()),
		{Sentence: "the new image cannot be pulled", Kstatus: failed}:                            fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.OldA(), fixture.OldB(), unpullable, fixture.OldImage()),
		{Sentence: "the new version keeps crashing", Kstatus: failed}:                            fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(4), fixture.OldImage()),
		{Sentence: "the quota is used up", Kstatus: failed}:                                      fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Refused(facts.ReasonMissing, "create pod db-f1: exceeded quota", time.Minute)),
		{Sentence: "the expansion of a claim is refused", Kstatus: failed}:                       fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonExpand, "no expansion", time.Minute)),
		{Sentence: "a budget of another owner has its name", Kstatus: failed}:                    fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), theirs),
		{Sentence: "the spec is invalid", Kstatus: failed}:                                       fixture.Seen(fixture.Set("d.b"), fixture.A(), fixture.B(), fixture.C()),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	var all golden.Statuses
	for situation, w := range readAsToolsDo() {
		set := w.Set.DeepCopy()
		set.Kind, set.APIVersion = "StatefulCluster", v1alpha1.GroupVersion.String()
		set.Status = fixture.Told(w)
		all.Add(t, situation, set)
	}
	all.Check(t, "statefulcluster")
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "StatefulCluster", status.Effects)
}
