package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

func TestClaimsOfAPod(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "SC-30 missing claims of a pod are created after the operator crashed between the creates",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").WithoutClaims(), fixture.B(), fixture.C()), Want: []string{"create persistentvolumeclaim db-data-a: Claim"}},
		{Name: "SC-18 refused creates of claims wait for their retry", World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").WithoutClaims(), fixture.B(), fixture.C(), fixture.Refused(facts.ReasonClaim, "quota", time.Minute)),
			Wait: time.Minute},
		{Name: "no claims are created for a terminating pod", World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").WithoutClaims().Going(), fixture.B(), fixture.C()),
			Want: []string{"create pod db-f1: Replacement, in place of db-a > create persistentvolumeclaim db-data-f1: Claim"}},
		{Name: "label retained is removed from the claims of a member that still exists",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().ClaimsRetained(), fixture.B(), fixture.C()),
			Want:  []string{"patch persistentvolumeclaim db-data-a: Retention, its member still exists"}},
	})
}

func TestClaimsThatLostTheirPod(t *testing.T) {
	loose := func(claim *fixture.ClaimFixture, s *fixture.SetFixture) *facts.World {
		return fixture.Seen(s, fixture.A(), fixture.B(), fixture.C(), claim)
	}
	labels := []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Lost"}
	deletes := func(why string) []string {
		return []string{"delete persistentvolumeclaim db-data-x: " + why + ", as set by persistentVolumeClaimRetentionPolicy"}
	}
	fixture.Check(t, []fixture.Row{
		{Name: "SC-39 a claim without a pod is labeled as Lost", World: loose(fixture.LooseClaimOf("x"), fixture.Set("db")), Want: labels},
		{Name: "SC-27 a claim without a pod is labeled before whenLost Delete deletes it", World: loose(fixture.LooseClaimOf("x"), fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove)), Want: labels},
		{Name: "SC-27 whenLost Retain keeps a claim of a lost member", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Lost), fixture.Set("db"))},
		{Name: "SC-27 whenLost Delete deletes a claim of a lost member", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Lost).SetAsideUnder(fixture.Remove).OnRecord(), fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove)), Want: deletes("Lost")},
		{Name: "a labeled claim that is not in status.claims is kept, because other clients may have labeled it", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Lost).SetAsideUnder(fixture.Remove), fixture.Set("db").Retention(fixture.Keep, fixture.Remove, fixture.Remove))},
		{Name: "a labeled claim is kept if status.claims has another claim with its name", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Scaled).SetAsideUnder(fixture.Remove).OnRecordAs("restored"), fixture.Set("db").Retention(fixture.Keep, fixture.Remove, fixture.Remove))},
		{Name: "a claim that is not in status.claims gets no owner reference with whenDeleted Delete", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Lost).But(func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil }), fixture.Set("db").Retention(fixture.Remove, fixture.Keep, fixture.Keep))},
		{Name: "a claim that was set aside under Retain is kept after the policy changes to Delete", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Lost).SetAsideUnder(fixture.Keep).OnRecord(), fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove))},
		{Name: "SC-27 whenScaled Retain keeps a claim of a retired member", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Scaled).SetAsideUnder(fixture.Remove).OnRecord(), fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove))},
		{Name: "SC-27 whenScaled Delete deletes a claim of a retired member", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Scaled).SetAsideUnder(fixture.Remove).OnRecord(), fixture.Set("db").Retention(fixture.Keep, fixture.Remove, fixture.Keep)), Want: deletes("Scaled")},
		{Name: "SC-27 whenScaled Delete does not delete a claim of a lost member", World: loose(fixture.LooseClaimOf("x").Retained(fixture.Lost).SetAsideUnder(fixture.Remove).OnRecord(), fixture.Set("db").Retention(fixture.Keep, fixture.Remove, fixture.Keep))},
		{Name: "a claim with an unknown value of label retained is kept", World: loose(fixture.LooseClaimOf("x").Retained("Mine").SetAsideUnder(fixture.Remove).OnRecord(), fixture.Set("db").Retention(fixture.Keep, fixture.Remove, fixture.Remove))},
		{Name: "the claim of a returning member is not changed",
			World: fixture.Seen(fixture.Set("db").Replicas(4), fixture.A(), fixture.B(), fixture.C(), fixture.LooseClaimOf("x"), fixture.Updating("x", "uid-of-x", "now"), fixture.Refused(facts.ReasonReturned, "quota", time.Minute)), Wait: time.Minute},
		{Name: "a claim that is being deleted is not changed",
			World: loose(fixture.LooseClaimOf("x").But(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(fixture.Ago(0)) }), fixture.Set("db"))},
		{Name: "the claims of a terminating pod are not changed", World: fixture.Seen(fixture.Set("db").Retention(fixture.Keep, fixture.Remove, fixture.Remove), fixture.A(), fixture.B(), fixture.C(), fixture.Pod("x").On("n9").Ready().Going())},
	})
}

func TestClaimsFollowWhenDeleted(t *testing.T) {
	unowned := func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil }
	owned := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{UID: "else"}, {UID: "uid-of-set"}}
	}
	goes := fixture.Set("db").Retention(fixture.Remove, fixture.Keep, fixture.Keep)
	fixture.Check(t, []fixture.Row{
		{Name: "SC-19 SC-27 claims get an owner reference when whenDeleted changes to Delete",
			World: fixture.Seen(goes, fixture.Pod("a").On("n1").Ready().ClaimsAre(unowned), fixture.B(), fixture.C()), Want: []string{"patch persistentvolumeclaim db-data-a: Retention, the claim is deleted with the set"}},
		{Name: "SC-19 SC-27 claims lose their owner reference when whenDeleted changes to Retain",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().ClaimsAre(owned), fixture.B(), fixture.C()), Want: []string{"patch persistentvolumeclaim db-data-a: Retention, the claim is kept when the set is deleted"}},
		{Name: "claims that were set aside get an owner reference when whenDeleted changes to Delete", World: fixture.Seen(goes, fixture.A(), fixture.B(), fixture.C(), fixture.LooseClaimOf("x").Retained(fixture.Lost).OnRecord().But(unowned)),
			Want: []string{"patch persistentvolumeclaim db-data-x: Retention, the claim is deleted with the set"}},
		{Name: "claims that are being deleted keep their owner reference when whenDeleted changes to Retain", World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().ClaimsAre(owned).ClaimsAre(func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp = ptr.To(fixture.Ago(0))
		}), fixture.B(), fixture.C())},
	})
	scaledDown := fixture.FirstWritten(fixture.Seen(fixture.Set("db").Replicas(2).Retention(fixture.Keep, fixture.Remove, fixture.Keep), fixture.A(), fixture.B(), fixture.C()))
	if got := scaledDown.GetAnnotations()[v1alpha1.AnnotationRetention]; got != string(fixture.Remove) {
		t.Errorf("SC-27 the claim of a retired member is set aside under policy %q, want the value of whenScaled", got)
	}
	changed := fixture.FirstWritten(fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().ClaimsAre(owned), fixture.B(), fixture.C()))
	if refs := changed.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != "else" {
		t.Errorf("owner references of others become %v", refs)
	}
}

func TestAbandonedClaims(t *testing.T) {
	steps := rules.LabelAbandoned([]*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "db-data-a", UID: "u"}}})
	if got := steps[0][0][0]; got.String() != "patch persistentvolumeclaim db-data-a: Retention, labeled enge.me/retained=Deleted" ||
		got.Object.GetLabels()[v1alpha1.LabelRetained] != v1alpha1.RetainedDeleted || got.Object.GetUID() != "u" {
		t.Errorf("SC-19 keeping the claims of a deleted set: action %s, labels %v", got, got.Object.GetLabels())
	}
}
