package statefulcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

const (
	keep   = v1alpha1.RetainClaims
	remove = v1alpha1.DeleteClaims
	scaled = v1alpha1.RetainedScaled
	lost   = v1alpha1.RetainedLost
)

func TestClaimsOfAPod(t *testing.T) {
	check(t, []row{
		{name: "SC-30 missing claims of a pod are created after the operator crashed between the creates",
			world: seen(set("db"), pod("a").withoutClaims(), b(), c()), want: []string{"create persistentvolumeclaim db-data-a: Claim"}},
		{name: "SC-18 refused creates of claims wait for their retry", world: seen(set("db"), pod("a").withoutClaims(), b(), c(), refused(facts.ReasonClaim, "quota", time.Minute)),
			wait: time.Minute},
		{name: "no claims are created for a terminating pod", world: seen(set("db"), pod("a").withoutClaims().going(), b(), c()),
			want: []string{"create pod db-f1: Replacement, in place of db-a > create persistentvolumeclaim db-data-f1: Claim"}},
		{name: "label retained is removed from the claims of a member that still exists",
			world: seen(set("db"), pod("a").on("n1").ready().claimsRetained(), b(), c()),
			want:  []string{"patch persistentvolumeclaim db-data-a: Retention, its member still exists"}},
	})
}

func TestClaimsThatLostTheirPod(t *testing.T) {
	loose := func(claim *claimFixture, s *setFixture) *facts.World { return seen(s, a(), b(), c(), claim) }
	labels := []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Lost"}
	deletes := func(why string) []string {
		return []string{"delete persistentvolumeclaim db-data-x: " + why + ", as set by persistentVolumeClaimRetentionPolicy"}
	}
	check(t, []row{
		{name: "SC-39 a claim without a pod is labeled as Lost", world: loose(looseClaimOf("x"), set("db")), want: labels},
		{name: "SC-27 a claim without a pod is labeled before whenLost Delete deletes it", world: loose(looseClaimOf("x"), set("db").retention(keep, keep, remove)), want: labels},
		{name: "SC-27 whenLost Retain keeps a claim of a lost member", world: loose(looseClaimOf("x").retained(lost), set("db"))},
		{name: "SC-27 whenLost Delete deletes a claim of a lost member", world: loose(looseClaimOf("x").retained(lost).setAsideUnder(remove).onRecord(), set("db").retention(keep, keep, remove)), want: deletes("Lost")},
		{name: "a labeled claim that is not in status.claims is kept, because other clients may have labeled it", world: loose(looseClaimOf("x").retained(lost).setAsideUnder(remove), set("db").retention(keep, remove, remove))},
		{name: "a labeled claim is kept if status.claims has another claim with its name", world: loose(looseClaimOf("x").retained(scaled).setAsideUnder(remove).onRecordAs("restored"), set("db").retention(keep, remove, remove))},
		{name: "a claim that is not in status.claims gets no owner reference with whenDeleted Delete", world: loose(looseClaimOf("x").retained(lost).but(func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil }), set("db").retention(remove, keep, keep))},
		{name: "a claim that was set aside under Retain is kept after the policy changes to Delete", world: loose(looseClaimOf("x").retained(lost).setAsideUnder(keep).onRecord(), set("db").retention(keep, keep, remove))},
		{name: "SC-27 whenScaled Retain keeps a claim of a retired member", world: loose(looseClaimOf("x").retained(scaled).setAsideUnder(remove).onRecord(), set("db").retention(keep, keep, remove))},
		{name: "SC-27 whenScaled Delete deletes a claim of a retired member", world: loose(looseClaimOf("x").retained(scaled).setAsideUnder(remove).onRecord(), set("db").retention(keep, remove, keep)), want: deletes("Scaled")},
		{name: "SC-27 whenScaled Delete does not delete a claim of a lost member", world: loose(looseClaimOf("x").retained(lost).setAsideUnder(remove).onRecord(), set("db").retention(keep, remove, keep))},
		{name: "a claim with an unknown value of label retained is kept", world: loose(looseClaimOf("x").retained("Mine").setAsideUnder(remove).onRecord(), set("db").retention(keep, remove, remove))},
		{name: "the claim of a returning member is not changed",
			world: seen(set("db").replicas(4), a(), b(), c(), looseClaimOf("x"), updating("x", "uid-of-x", "now"), refused(facts.ReasonReturned, "quota", time.Minute)), wait: time.Minute},
		{name: "a claim that is being deleted is not changed",
			world: loose(looseClaimOf("x").but(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(ago(0)) }), set("db"))},
		{name: "the claims of a terminating pod are not changed", world: seen(set("db").retention(keep, remove, remove), a(), b(), c(), pod("x").on("n9").ready().going())},
	})
}

func TestClaimsFollowWhenDeleted(t *testing.T) {
	unowned := func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil }
	owned := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{UID: "else"}, {UID: "uid-of-set"}}
	}
	goes := set("db").retention(remove, keep, keep)
	check(t, []row{
		{name: "SC-19 SC-27 claims get an owner reference when whenDeleted changes to Delete",
			world: seen(goes, pod("a").on("n1").ready().claimsAre(unowned), b(), c()), want: []string{"patch persistentvolumeclaim db-data-a: Retention, the claim is deleted with the set"}},
		{name: "SC-19 SC-27 claims lose their owner reference when whenDeleted changes to Retain",
			world: seen(set("db"), pod("a").on("n1").ready().claimsAre(owned), b(), c()), want: []string{"patch persistentvolumeclaim db-data-a: Retention, the claim is kept when the set is deleted"}},
		{name: "claims that were set aside get an owner reference when whenDeleted changes to Delete", world: seen(goes, a(), b(), c(), looseClaimOf("x").retained(lost).onRecord().but(unowned)),
			want: []string{"patch persistentvolumeclaim db-data-x: Retention, the claim is deleted with the set"}},
		{name: "claims that are being deleted keep their owner reference when whenDeleted changes to Retain", world: seen(set("db"), pod("a").on("n1").ready().claimsAre(owned).claimsAre(func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp = ptr.To(ago(0))
		}), b(), c())},
	})
	scaledDown := firstWritten(seen(set("db").replicas(2).retention(keep, remove, keep), a(), b(), c()))
	if got := scaledDown.GetAnnotations()[v1alpha1.AnnotationRetention]; got != string(remove) {
		t.Errorf("SC-27 the claim of a retired member is set aside under policy %q, want the value of whenScaled", got)
	}
	changed := firstWritten(seen(set("db"), pod("a").on("n1").ready().claimsAre(owned), b(), c()))
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
