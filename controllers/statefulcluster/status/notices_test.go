package status_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

func TestOrphanedPodsCondition(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"W5 an orphan with claims is reported", fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.Orphan("a")), "True OrphanedPods: pods have the labels of members but no owner. The operator cannot determine whether they were members, " +
			"so it ignores them and creates no replacement for 1 member: db-a; " +
			"if db-a was a member: `kubectl -n ns patch pod db-a --type=merge -p '{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"enge.me/v1alpha1\",\"kind\":\"StatefulCluster\",\"name\":\"db\",\"uid\":\"uid-of-set\",\"controller\":true,\"blockOwnerDeletion\":true}]}}'`; " +
			"if not: `kubectl -n ns delete pod db-a`"},
		{"W5 the command in the message names an orphan with claims", fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.Stray("0"), fixture.Orphan("a")), "if not: `kubectl -n ns delete pod db-a`"},
		{"W5 an orphan without claims is not reported", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Stray("x")), "False "},
	} {
		if got := fixture.Says(fixture.Told(r.world), v1alpha1.ConditionDegraded); !strings.Contains(got, r.want) {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestWhatDegradedSaysOfMembersThatFail(t *testing.T) {
	old, image := 50*time.Minute, fixture.OldImage()
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"V9 a crash loop is reported while the container waits", fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").UnreadyFor(time.Second).Restarted(2), image),
			"containers keep restarting, and no member with the same template has been Ready for 10 minutes, so these members are not replaced: db-c; `kubectl -n ns logs --previous db-c` shows why; correct the template"},
		{"V9 a crash loop is reported while the container runs", fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(2), image),
			"containers keep restarting, and no member with the same template has been Ready for 10 minutes, so these members are not replaced: db-c; `kubectl -n ns logs --previous db-c` shows why; correct the template"},
		{"V9 one restart is not a crash loop", fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(1), image), ""},
		{"V8 the members of a new set are unschedulable because their StorageClass does not exist", fixture.Seen(fixture.Set("db").Replicas(2), fixture.NowNeverReady, fixture.Pod("a").UnschedulableFor(old), fixture.Pod("b").UnschedulableFor(old)),
			"members are unschedulable and are not replaced, because new members would be unschedulable too: db-a, db-b; `kubectl -n ns describe pod db-a` shows what is missing, such as capacity, a node label, a StorageClass or a volume"},
		{"V8 an image cannot be pulled", fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.Pod("c").Recreated().On("n3").Starting().Waiting("ErrImagePull"), image),
			"members do not become Ready and are not replaced, because new members with the same template would fail in the same way: db-c (ImagePullBackOff); `kubectl -n ns describe pod db-c` shows why; correct the template"},
		{"V8 one member fails its probe and another is unschedulable",
			fixture.Seen(fixture.Set("db").Replicas(2), fixture.NowNeverReady, fixture.Pod("a").UnschedulableFor(old), fixture.Pod("b").On("n1").Starting()),
			"members do not become Ready and are not replaced, because new members with the same template would fail in the same way: db-b; `kubectl -n ns describe pod db-b` shows why; correct the template; " +
				"members are unschedulable and are not replaced, because new members would be unschedulable too: db-a; `kubectl -n ns describe pod db-a` shows what is missing, such as capacity, a node label, a StorageClass or a volume"},
	} {
		got := fixture.Says(fixture.Told(r.world), v1alpha1.ConditionDegraded)
		want := "True RevisionFailing: " + r.want
		if r.want == "" {
			want = "False Healthy: no problems detected"
		}
		if got != want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, want)
		}
	}
	waits := fixture.Says(fixture.Told(fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(1), image)), v1alpha1.ConditionProgressing)
	if want := "; waiting until members that restarted since their update stay Ready: db-c"; !strings.HasSuffix(waits, want) {
		t.Errorf("V9 Progressing is %s, want it to end with %s", waits, want)
	}
}

func TestUnrecordedClaimsAreTold(t *testing.T) {
	const want = "True UnrecordedClaims: claims have the set's labels but are not in status.claims, so they are kept regardless of the retention policy: " +
		"db-data-x; to delete one: `kubectl -n ns delete pvc db-data-x`; to keep it, remove it from the set: `kubectl -n ns label pvc db-data-x enge.me/cluster-uid-`"
	x := func() *fixture.ClaimFixture {
		return fixture.LooseClaimOf("x").Retained(fixture.Lost).SetAsideUnder(fixture.Remove)
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"an unrecorded claim that the policy would delete", fixture.Seen(fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove), fixture.A(), fixture.B(), fixture.C(), x()), want},
		{"an unrecorded claim that would be deleted with the set", fixture.Seen(fixture.Set("db").Retention(fixture.Remove, fixture.Keep, fixture.Keep), fixture.A(), fixture.B(), fixture.C(), x().But(func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil })), want},
		{"a labeled claim with an invalid name", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) {
			w.Misnamed = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "db-data-x"}}}
		})), want},
		{"an unrecorded claim that the policy keeps is not reported", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), x()), "False Healthy: no problems detected" + status.AsideMessage(facts.Derive(fixture.Seen(fixture.Set("db"), x())))},
		{"a recorded claim is not reported", fixture.Seen(fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove), fixture.A(), fixture.B(), fixture.C(), x().OnRecord()), "False Healthy: no problems detected"},
	} {
		if got := fixture.Says(fixture.Told(r.world), v1alpha1.ConditionDegraded); got != r.want {
			t.Errorf("%s: %s", r.name, got)
		}
	}
}

func TestRestoredClaimsAreTold(t *testing.T) {
	waits := func(all ...*fixture.LeftFixture) *facts.World {
		return fixture.Seen(fixture.Set("db").From("monday"), fixture.NeverRan, fixture.LeftBehindBy(all...))
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		says  []string
	}{
		{"SC-50 the message has the claims, the decision and the commands", waits(fixture.Left(fixture.Xs).From("monday"), fixture.Left(fixture.Ys).From("monday")), []string{
			"the set was restored from backup monday, and so were claims of a set with the same name: db-data-xxxxxxxxxx, db-data-yyyyyyyyyy. No member is created on empty claims until you decide whether the set adopts them.",
			"kubectl -n ns annotate pvc -l 'enge.me/cluster-uid=uid-of-old,enge.me/retained notin (Lost,Scaled)' enge.me/adopt=db.",
			"kubectl -n ns label stc db velero.io/backup-name-"}},
		{"SC-50 the message reports that the claims belong to several sets", waits(fixture.Left(fixture.Xs).From("monday"), fixture.Left(fixture.Ys).From("monday").By("uid-of-older")), []string{
			"of 2 sets: kubectl -n ns get pvc -L enge.me/cluster-uid"}},
		{"SC-50 the message has the pods that block members", waits(fixture.Left(fixture.Xs).From("monday").Given().Beside()), []string{
			"these members are not created: db-xxxxxxxxxx.", "kubectl -n ns delete pod db-xxxxxxxxxx"}},
	} {
		p := fixture.PlanOf(r.world)
		s := fixture.StatusOf(r.world, &p, nil)
		i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionDegraded })
		if s.Conditions[i].Reason != v1alpha1.ReasonRestoredClaims {
			t.Errorf("%s: reason of Degraded is %s", r.name, s.Conditions[i].Reason)
		}
		for _, words := range r.says {
			if !strings.Contains(s.Conditions[i].Message, words) {
				t.Errorf("%s: %q does not contain %q", r.name, s.Conditions[i].Message, words)
			}
		}
	}
}
