package statefulcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// recordOf returns the claims in the status, without their UIDs.
func recordOf(s v1alpha1.StatefulClusterStatus) (names []string) {
	for _, c := range s.Claims {
		if c.UID == "" {
			names = append(names, "no UID of")
		}
		names = append(names, strings.TrimPrefix(c.Name, "db-data-"))
	}
	return names
}

func TestClaimsOnRecord(t *testing.T) {
	deletes := func() *setFixture { return set("db").retention(keep, keep, remove) }
	for _, r := range []struct {
		name  string
		world *facts.World
		want  []string
	}{
		{"claims of members are recorded even if no policy deletes claims", seen(set("db"), a(), b(), c()), []string{"a", "b", "c"}},
		{"claims of members are recorded with whenLost Delete", seen(deletes(), a(), b(), c()), []string{"a", "b", "c"}},
		{"claims of members are recorded with whenScaled Delete", seen(set("db").retention(keep, remove, keep), a(), b(), c()), []string{"a", "b", "c"}},
		{"claims of members are recorded with whenDeleted Delete", seen(set("db").retention(remove, keep, keep), a(), b(), c()), []string{"a", "b", "c"}},
		{"claims of terminating members are recorded", seen(deletes(), a(), b(), c().going()), []string{"a", "b", "c"}},
		{"a recorded claim without a pod stays recorded while it exists", seen(deletes(), a(), b(), c(), looseClaimOf("x").retained(lost).onRecord()), []string{"a", "b", "c", "x"}},
		{"an unrecorded claim without a pod is not recorded", seen(deletes(), a(), b(), c(), looseClaimOf("x")), []string{"a", "b", "c"}},
		{"a claim is not recorded because an earlier claim with its name was", seen(deletes(), a(), b(), c(), looseClaimOf("x").onRecordAs("restored")), []string{"a", "b", "c"}},
		{"a deleted claim is removed from the record", seen(deletes(), a(), b(), c(), with(func(w *facts.World) {
			w.Set.Status.Claims = []v1alpha1.RecordedClaim{{Name: "db-data-x", UID: "uid-of-db-data-x"}}
		})), []string{"a", "b", "c"}},
	} {
		if got := recordOf(told(r.world)); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

func TestClaimsComeOnRecordWithTheirCreation(t *testing.T) {
	w := seen(set("db").retention(keep, keep, remove).replicas(1))
	p := planOf(w)
	var outcomes []action.Outcome
	for _, a := range p.Steps[0][0] {
		answer := a.Object.DeepCopyObject().(client.Object)
		answer.SetUID("new")
		outcomes = append(outcomes, action.Outcome{Action: a, Answer: answer})
	}
	if got := statusOf(w, &p, outcomes).Claims; !slices.Equal(got, []v1alpha1.RecordedClaim{{Name: "db-data-f1", UID: "new"}}) {
		t.Errorf("status.claims is %v", got)
	}
	for i := range outcomes {
		outcomes[i].Err = context.Canceled
	}
	if got := statusOf(w, &p, outcomes).Claims; len(got) > 0 {
		t.Errorf("status.claims after failed creates is %v", got)
	}
}

func TestADeletedClaimLeavesTheRecord(t *testing.T) {
	w := seen(set("db").retention(keep, keep, remove), a(), b(), c(), looseClaimOf("x").retained(lost).setAsideUnder(remove).onRecord())
	p := planOf(w)
	if got := recordOf(statusOf(w, &p, []action.Outcome{{Action: p.Steps[0][0][0]}})); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("status.claims has %q", got)
	}
}

func TestTheRecordOfClaimsIsBounded(t *testing.T) {
	things := []thing{pod("zz").on("n1").ready().going(), looseClaimOf("zy").retained(lost).onRecord()}
	for i := range facts.MaxClaims + 1 {
		things = append(things, pod(fmt.Sprintf("m%04d", i)).on("n1").ready())
	}
	got := recordOf(told(seen(set("db").replicas(facts.MaxClaims+2).retention(keep, keep, remove), things...)))
	if len(got) != facts.MaxClaims || got[0] != "m0000" || got[facts.MaxClaims-3] != "m1997" || got[facts.MaxClaims-2] != "zy" || got[facts.MaxClaims-1] != "zz" {
		t.Errorf("status.claims has %d claims: %s … %s", len(got), got[0], got[len(got)-3:])
	}
}

// Anyone who may patch a claim can label it.
func TestALabelMakesNoClaimOurs(t *testing.T) {
	s := newStage(t, set("db").retention(remove, remove, remove))
	s.settle(time.Minute)
	for _, name := range []string{"payroll", "db-payroll", "payroll-data-aaaaaaaaaa", "db-other-aaaaaaaaaa", "db-data-aaaaaaaaaa"} {
		labelled := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns",
			Labels: map[string]string{v1alpha1.LabelCluster: "db", v1alpha1.LabelClusterUID: string(s.set().UID),
				v1alpha1.LabelMember: "aaaaaaaaaa", v1alpha1.LabelRetained: lost},
			Annotations: map[string]string{v1alpha1.AnnotationRetention: string(remove)}}}
		s.Put(labelled)
		s.settle(time.Minute)
		s.Check(t)
		var after corev1.PersistentVolumeClaim
		if err := s.Get(context.Background(), client.ObjectKeyFromObject(labelled), &after); err != nil || len(after.OwnerReferences) > 0 {
			t.Errorf("%s: %v, owners %v", name, err, after.OwnerReferences)
		}
		if got := says(s.set().Status, v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True UnrecordedClaims") || !strings.Contains(got, name) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestUnrecordedClaimsAreTold(t *testing.T) {
	const want = "True UnrecordedClaims: claims have the set's labels but are not in status.claims, so they are kept regardless of the retention policy: " +
		"db-data-x; to delete one: `kubectl -n ns delete pvc db-data-x`; to keep it, remove it from the set: `kubectl -n ns label pvc db-data-x enge.me/cluster-uid-`"
	x := func() *claimFixture { return looseClaimOf("x").retained(lost).setAsideUnder(remove) }
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"an unrecorded claim that the policy would delete", seen(set("db").retention(keep, keep, remove), a(), b(), c(), x()), want},
		{"an unrecorded claim that would be deleted with the set", seen(set("db").retention(remove, keep, keep), a(), b(), c(), x().but(func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil })), want},
		{"a labeled claim with an invalid name", seen(set("db"), a(), b(), c(), with(func(w *facts.World) {
			w.Misnamed = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "db-data-x"}}}
		})), want},
		{"an unrecorded claim that the policy keeps is not reported", seen(set("db"), a(), b(), c(), x()), "False Healthy: no problems detected" + status.AsideMessage(facts.Derive(seen(set("db"), x())))},
		{"a recorded claim is not reported", seen(set("db").retention(keep, keep, remove), a(), b(), c(), x().onRecord()), "False Healthy: no problems detected"},
	} {
		if got := says(told(r.world), v1alpha1.ConditionDegraded); got != r.want {
			t.Errorf("%s: %s", r.name, got)
		}
	}
}
