package facts_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func lostBefore(id string) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		w.Set.Status.Lost = append(w.Set.Status.Lost, v1alpha1.LostMember{Name: w.NameOf(id)})
	})
}

const keptOnRecord = "patch status of statefulcluster db: Update"

func TestOutage(t *testing.T) {
	down := func(p *fixture.PodFixture) *fixture.PodFixture {
		return p.UnreadyFor(20 * time.Minute).NodeNotReadyFor(20 * time.Minute)
	}
	da := func() *fixture.PodFixture { return down(fixture.Pod("a").On("n1")) }
	db := func() *fixture.PodFixture { return down(fixture.Pod("b").On("n2")) }
	dc := func() *fixture.PodFixture { return down(fixture.Pod("c").On("n3")) }
	back := func(d time.Duration) *fixture.PodFixture { return fixture.Pod("c").On("n3").ReadyFor(d) }
	fixture.Check(t, []fixture.Row{
		{Name: "W2 no member is replaced while no member is Ready", World: fixture.Seen(fixture.Set("db"), da(), db(), dc())},
		{Name: "W2 no member is replaced while all Nodes are missing",
			World: fixture.Seen(fixture.Set("db"), fixture.A().NodeMissingFor(time.Hour), fixture.B().NodeMissingFor(time.Hour), fixture.C().NodeMissingFor(time.Hour))},
		{Name: "W2 the only member is not replaced when its Node is lost", World: fixture.Seen(fixture.Set("db").Replicas(1), da())},
		{Name: "W2 the only member is not replaced when it is unready", World: fixture.Seen(fixture.Set("db").Replicas(1), fixture.Pod("a").On("n1").UnreadyFor(time.Hour))},
		{Name: "W2 the only member is replaced with whenNoneReady Replace",
			World: fixture.Seen(fixture.Set("db").Replicas(1).ReplacesInOutage(), da()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{Name: "W2 the only member is replaced when an administrator taints its Node out of service",
			World: fixture.Seen(fixture.Set("db").Replicas(1), fixture.A().NodeOutOfService()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeOutOfService)}},
		{Name: "W2 the only member of a set without claims is replaced",
			World: fixture.Seen(fixture.Set("db").Replicas(1).WithClaims(), da()), Want: []string{"delete pod db-a: NodeNotReady, the member is lost and will not come back, it has no claims > " +
				"create pod db-f1: Replacement, in place of db-a"}},
		{Name: "W2 members whose pods failed in an outage are recreated on their claims",
			World: fixture.Seen(fixture.Set("db"), da().Failed(), db().Failed(), dc()), Want: fixture.Restarts("a", "b")},
		{Name: "W2 a member whose pod disappeared in an outage is recorded for its return",
			World: fixture.Seen(fixture.Set("db"), da(), db(), fixture.LooseClaimOf("c")), Want: []string{keptOnRecord}},
		{Name: "W2 a member that the control plane evicted in an outage is recorded for its return",
			World: fixture.Seen(fixture.Set("db"), da().Disrupted("DeletionByTaintManager"), db(), dc()), Want: []string{keptOnRecord}},
		{Name: "W2 a member whose pod disappeared is recorded for its return shortly after an outage",
			World: fixture.Seen(fixture.Set("db").Replicas(2), back(2*time.Minute), fixture.LooseClaimOf("a").But(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = fixture.Ago(time.Hour) })),
			Want:  []string{keptOnRecord}},
		{Name: "W2 a member whose pod disappeared is replaced in a new set",
			World: fixture.Seen(fixture.Set("db").Replicas(2), back(2*time.Minute), fixture.LooseClaimOf("a").But(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = fixture.Ago(3 * time.Minute) })),
			Want:  fixture.Creates("f1")},
		{Name: "W2 members that a user evicted or deleted in an outage are replaced",
			World: fixture.Seen(fixture.Set("db"), da().Evicted(), db().Going(), dc()),
			Want:  []string{fixture.CreatesInPlaceOf("a", "f1"), fixture.CreatesInPlaceOf("b", "f2")}},
		{Name: "W2 members lost in an outage are kept for outageGrace after the first member became Ready",
			World: fixture.Seen(fixture.Set("db"), da(), fixture.B().UnreadyFor(10*time.Minute).NodeNotReadyFor(10*time.Minute), back(2*time.Minute)), Wait: 3 * time.Minute},
		{Name: "W2 members lost in an outage are replaced after outageGrace",
			World: fixture.Seen(fixture.Set("db"), da(), fixture.B(), back(5*time.Minute)), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{Name: "W2 a member lost after the outage is replaced",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.Pod("a").On("n1").UnreadyFor(time.Minute).NodeNotReadyFor(time.Minute), back(2*time.Minute)),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{Name: "W2 a returning member on a lost Node is not replaced in an outage",
			World: fixture.Seen(fixture.Set("db"), da().Going(), db(), dc(), fixture.Updating("a", "uid-of-a", "now"))},
	})
	w := fixture.Seen(fixture.Set("db"), da(), db(), dc())
	p := fixture.PlanOf(w)
	if got := fixture.Says(fixture.StatusOf(w, &p, nil), v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True NoMemberReady") || !strings.Contains(got, "db-a, db-b, db-c") {
		t.Errorf("W2 condition Degraded is %s", got)
	}
}

// offered searches for claims that were given to the set, with no names on record.
var offered = fixture.With(func(w *facts.World) {
	w.Set.Status.Creating = nil
	w.Offers = w.OffersOf(w.Loose)
	w.Fresh = append(facts.FirstIDs(w), w.Fresh...)
})

func TestClaimsAreDeletedAtASecondLook(t *testing.T) {
	set := func() *fixture.SetFixture {
		return fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
			s.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
		})
	}
	lost := func(d time.Duration) *fixture.ClaimFixture {
		return fixture.LooseClaimOf("x").Retained("Lost").SetAsideUnder(v1alpha1.DeleteClaims).OnRecord().SeenFor(d)
	}
	gone := []string{"delete persistentvolumeclaim db-data-x: Lost, as set by persistentVolumeClaimRetentionPolicy"}
	scaled := func(replicas int32) *fixture.SetFixture {
		return set().Replicas(replicas).Retention(v1alpha1.RetainClaims, v1alpha1.DeleteClaims, v1alpha1.RetainClaims)
	}
	retired := func() *fixture.ClaimFixture {
		return fixture.LooseClaimOf("x").Retained("Scaled").SetAsideUnder(v1alpha1.DeleteClaims).OnRecord()
	}
	fixture.Check(t, []fixture.Row{
		{Name: "W2 a claim of a lost member is not deleted before secondLook", World: fixture.Seen(set(), fixture.A(), fixture.B(), fixture.C(), lost(spec.SecondLook-1)), Wait: 1},
		{Name: "W2 a claim of a lost member is deleted after secondLook", World: fixture.Seen(set(), fixture.A(), fixture.B(), fixture.C(), lost(spec.SecondLook)), Want: gone},
		{Name: "W2 a claim of a lost member is not deleted while no member is Ready",
			World: fixture.Seen(set(), fixture.Pod("a").On("n1").UnreadyFor(time.Minute), fixture.Pod("b").On("n2").UnreadyFor(time.Minute), fixture.Pod("c").On("n3").UnreadyFor(time.Minute), lost(time.Hour)),
			Wait:  4 * time.Minute},
		{Name: "W2 a claim of a retired member is not deleted while no member is Ready", World: fixture.Seen(scaled(1), fixture.Pod("a").On("n1").UnreadyFor(time.Minute), retired()), Wait: 4 * time.Minute},
		{Name: "W2 a claim of a retired member is deleted when replicas is 0", World: fixture.Seen(scaled(0), retired()), Want: []string{"delete persistentvolumeclaim db-data-x: Scaled, as set by persistentVolumeClaimRetentionPolicy"}},
	})
}
