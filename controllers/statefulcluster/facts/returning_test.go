package facts_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func TestMembersThatVanishUnseen(t *testing.T) {
	keep := func() *fixture.SetFixture { return fixture.Set("db").KeepsEvicted() }
	fixture.Check(t, []fixture.Row{
		{Name: "W1 a member whose pod disappeared unobserved is recorded for its return with Keep",
			World: fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")), Want: []string{keptOnRecord}},
		{Name: "W1 a member whose pod disappeared unobserved is recreated with the current template",
			World: fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a"), fixture.Updating("a", "", "now")), Want: fixture.Brings("a")},
		{Name: "W1 a member whose deletion by a user was observed is replaced",
			World: fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a"), fixture.DeletedByUser("a")), Want: fixture.Creates("f1")},
		{Name: "W1 a member in status.lost is replaced",
			World: fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a"), lostBefore("a")), Want: fixture.Creates("f1")},
		{Name: "W1 a member with a successor is not recreated and its claim is labeled",
			World: fixture.Seen(keep(), fixture.B().InPlaceOf("a", 1), fixture.C(), fixture.Pod("d").On("n1").Ready(), fixture.LooseClaimOf("a")),
			Want:  []string{"patch persistentvolumeclaim db-data-a: Retention, labeled enge.me/retained=Lost"}},
		{Name: "W1 a member without all of its claims is replaced",
			World: fixture.Seen(keep().WithClaims("data", "logs"), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) {
				fixture.LooseClaimOf("a").Into(w)
				w.Loose = w.Loose[:1]
			})),
			Want: []string{"create pod db-f1: Missing > create persistentvolumeclaim db-data-f1: Claim > create persistentvolumeclaim db-logs-f1: Claim"}},
		{Name: "W1 no action is taken while the cache does not show how a pod ended",
			World: fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a"), fixture.EndsUnseen("a")), Wait: spec.StatusInterval},
		{Name: "W1 a member whose pod disappeared unobserved is replaced with onEviction Replace",
			World: fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")), Want: fixture.Creates("f1")},
		{Name: "W1 a claim that was set aside is not used for a new member",
			World: fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a").Retained("Lost")), Want: fixture.Creates("f1")},
		{Name: "W2 a member whose node was shut down is recreated with Keep",
			World: fixture.Seen(keep(), fixture.A().EndedByNode("Terminated"), fixture.B(), fixture.C()), Want: fixture.Restarts("a")},
		{Name: "W2 a member that its kubelet evicted is recreated with Keep",
			World: fixture.Seen(keep(), fixture.A().EndedByNode("Evicted"), fixture.B(), fixture.C()), Want: fixture.Restarts("a")},
		{Name: "W2 a failed pod without a reason is recreated with Keep if restartPolicy is Always",
			World: fixture.Seen(keep(), fixture.A().EndedByNode("").RestartPolicy(corev1.RestartPolicyAlways), fixture.B(), fixture.C()), Want: fixture.Restarts("a")},
		{Name: "W2 a pod that exceeded activeDeadlineSeconds is replaced with Keep",
			World: fixture.Seen(keep(), fixture.A().EndedByNode("DeadlineExceeded").RestartPolicy(corev1.RestartPolicyAlways), fixture.B(), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossFailed)}},
		{Name: "W2 a member whose node was shut down and is not Ready is recreated with Keep",
			World: fixture.Seen(keep(), fixture.A().EndedByNode("Terminated").NodeNotReadyFor(time.Minute), fixture.B(), fixture.C()), Want: fixture.Restarts("a")},
		{Name: "W2 a preempted member is recorded for its return with Keep",
			World: fixture.Seen(keep(), fixture.A().Disrupted("PreemptionByScheduler"), fixture.B(), fixture.C()), Want: []string{keptOnRecord}},
		{Name: "W2 a member whose program ended is replaced with Keep",
			World: fixture.Seen(keep(), fixture.A().Failed(), fixture.B(), fixture.C()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossFailed)}},
		{Name: "W2 a member that its kubelet evicted is replaced with onEviction Replace",
			World: fixture.Seen(fixture.Set("db"), fixture.A().EndedByNode("Evicted"), fixture.B(), fixture.C()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossFailed)}},
	})
}
