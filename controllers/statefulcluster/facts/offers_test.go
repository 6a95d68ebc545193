package facts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func TestClaimsThatAreGivenBack(t *testing.T) {
	x := func() *fixture.ClaimFixture { return fixture.LooseClaimOf(fixture.Xs).Retained("Lost").GivenBack() }
	const names = "patch status of statefulcluster db: Names"
	back := []string{names, "create pod db-" + fixture.Xs + ": Missing > patch persistentvolumeclaim db-data-" + fixture.Xs + ": Claim, adopted as its annotation requests"}
	fresh := []string{names, fixture.Creates("f1")[0]}
	remove := func() *fixture.SetFixture {
		return fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
			s.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
		})
	}
	fixture.Check(t, []fixture.Row{
		{Name: "SC-51 a member is created in an empty slot on a claim that was given back",
			World: offered.To(fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), x())), Want: back},
		{Name: "SC-51 a member in status.lost is created on a claim that was given back",
			World: offered.To(fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), x(), lostBefore(fixture.Xs))), Want: back},
		{Name: "SC-51 no member is created on a claim that was not given back",
			World: offered.To(fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.LooseClaimOf(fixture.Xs).Retained("Lost"))), Want: fresh},
		{Name: "SC-51 no member is created on a claim that was not set aside",
			World: offered.To(fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.LooseClaimOf(fixture.Xs).GivenBack(), fixture.DeletedByUser(fixture.Xs))), Want: fresh},
		{Name: "SC-51 no member is created on a claim that was given back while the old pod exists",
			World: offered.To(fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Pod(fixture.Xs).On("n3").Ready().Going().WithoutClaims(), x())),
			Want:  []string{names, fixture.CreatesInPlaceOf(fixture.Xs, "f1")}},
		{Name: "SC-51 no member is created until all of its claims are given back",
			World: fixture.With(func(w *facts.World) { w.Loose = w.Loose[:1] }).To(fixture.Seen(fixture.Set("db").WithClaims("data", "logs"), fixture.A(), fixture.B(), fixture.C(), x()))},
		{Name: "SC-51 no existing member is replaced for a claim that was given back", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), x())},
		{Name: "SC-51 a claim that was given back is not deleted while it waits",
			World: fixture.Seen(remove(), fixture.A(), fixture.B(), fixture.C(), x().But(func(c *corev1.PersistentVolumeClaim) {
				c.Annotations[v1alpha1.AnnotationRetention] = string(v1alpha1.DeleteClaims)
			}).OnRecord())},
	})
	aside := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.LooseClaimOf(fixture.Xs).Retained("Lost"))
	p := fixture.PlanOf(aside)
	const want = "annotate pvc -l enge.me/cluster=db,enge.me/member=" + fixture.Xs + " enge.me/adopt=db"
	if got := fixture.Says(fixture.StatusOf(aside, &p, nil), v1alpha1.ConditionDegraded); !strings.Contains(got, "db-data-"+fixture.Xs) || !strings.Contains(got, want) {
		t.Errorf("W2 condition Degraded is %s", got)
	}
	is := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Pod(fixture.Xs).Aged(time.Minute).On("n3").Ready().Annotated(v1alpha1.AnnotationUpdated, facts.Restored), lostBefore(fixture.Xs))
	p = fixture.PlanOf(is)
	if lost := fixture.StatusOf(is, &p, nil).Lost; len(lost) > 0 {
		t.Errorf("SC-51 status.lost has a member that returned: %v", lost)
	}
}

// asks makes the last pass one that waited for the user's decision about restored claims.
var asks = fixture.With(func(w *facts.World) {
	w.Set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRestoredClaims}}
})

// cameWith returns a member that was created on claims given to the set.
func cameWith(id string) *fixture.PodFixture {
	return fixture.Pod(id).On("n1").Ready().Annotated(v1alpha1.AnnotationUpdated, facts.Restored)
}

// takes returns the line of a member that is created on claims given to the set.
func takes(id string) string {
	return fmt.Sprintf("create pod db-%s: Missing > patch persistentvolumeclaim db-data-%s: Claim, adopted as its annotation requests", id, id)
}

func TestClaimsOfNamesakes(t *testing.T) {
	names := "patch status of statefulcluster db: Names"
	one := func() *fixture.SetFixture { return fixture.Set("db").Replicas(1) }
	fresh := append([]string{names}, fixture.Creates("f1")...)
	fixture.Check(t, []fixture.Row{
		{Name: "SC-50 a set that was restored with claims creates no member until a user decides about the claims",
			World: fixture.Seen(one().From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday")))},
		{Name: "SC-50 a set that was restored with claims labeled as Deleted creates no member",
			World: fixture.Seen(one().From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday").Retained("Deleted")))},
		{Name: "SC-50 a restored set does not wait for claims that were set aside before the backup",
			World: fixture.Seen(one().From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday").Retained("Lost"), fixture.Left(fixture.Ys).From("monday").Retained("Scaled"))), Want: fresh},
		{Name: "SC-50 a restored set does not wait for claims of another backup",
			World: fixture.Seen(one().From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("tuesday"))), Want: fresh},
		{Name: "SC-50 a set that was not restored ignores claims of an earlier set with its name",
			World: fixture.Seen(one(), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday"), fixture.Left(fixture.Ys))), Want: fresh},
		{Name: "SC-50 a restored set that had a member does not wait",
			World: fixture.Seen(one().From("monday"), fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday"))), Want: fresh},
		{Name: "SC-50 a restored set with recorded names does not wait",
			World: fixture.Seen(one().From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday")), fixture.Creating("f1")), Want: fixture.Creates("f1")},
		{Name: "SC-50 only members on given claims are created until all claims are given",
			World: fixture.Seen(fixture.Set("db").Replicas(3).From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday").Given(), fixture.Left(fixture.Ys).From("monday"))),
			Want:  []string{names, takes(fixture.Xs)}},
		{Name: "SC-50 a restored set with a starting member on given claims waits for the other claims",
			World: fixture.Seen(fixture.Set("db").Replicas(2).From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Ys).From("monday")), cameWith("a").Starting()), Failing: []string{"db-a"}},
		{Name: "SC-50 a restored set with a Ready member on given claims waits for the other claims",
			World: fixture.Seen(fixture.Set("db").Replicas(2).From("monday"), asks, fixture.LeftBehindBy(fixture.Left(fixture.Ys).From("monday")), cameWith("a"))},
		{Name: "SC-50 a second member is created when its claims are given",
			World: fixture.Seen(fixture.Set("db").Replicas(2).From("monday"), asks, fixture.LeftBehindBy(fixture.Left(fixture.Ys).From("monday").Given()), cameWith("a")),
			Want:  []string{names, takes(fixture.Ys)}},
		{Name: "SC-50 a lost member is replaced while the set waits for claims",
			World: fixture.Seen(fixture.Set("db").Replicas(3).MaxConcurrent("2").From("monday"), asks, fixture.LeftBehindBy(fixture.Left(fixture.Ys).From("monday")), fixture.A().Failed(), cameWith("c")),
			Want:  []string{names, fixture.Replaces("a", "f1", v1alpha1.LossFailed)}},
		{Name: "SC-50 a member is created on given claims with their id after its name is recorded",
			World: fixture.Seen(one().From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Xs).From("monday").Given())), Want: []string{names, takes(fixture.Xs)}},
		{Name: "SC-50 a set that was not restored uses given claims labeled as Lost",
			World: fixture.Seen(one(), fixture.LeftBehindBy(fixture.Left(fixture.Xs).Retained("Lost").Given())), Want: []string{names, takes(fixture.Xs)}},
		{Name: "SC-50 members on given claims are created before new members",
			World: fixture.Seen(fixture.Set("db").From("monday"), fixture.NeverRan, fixture.LeftBehindBy(fixture.Left(fixture.Ys).Given(), fixture.Left(fixture.Xs).Given())),
			Want:  append([]string{names, takes(fixture.Xs), takes(fixture.Ys)}, fixture.Creates("f1")...)},
		{Name: "SC-50 claims that were given to another set are not used",
			World: fixture.Seen(one(), fixture.LeftBehindBy(fixture.Left(fixture.Xs).GivenTo("other"))), Want: fresh},
		{Name: "SC-50 given claims are not used if a claim of the member is missing",
			World: fixture.Seen(one().TwoClaims(), fixture.LeftBehindBy(fixture.Left(fixture.Xs).Given().Without(1))),
			Want:  []string{names, fixture.Creates("f1")[0] + " > create persistentvolumeclaim db-logs-f1: Claim"}},
		{Name: "SC-50 given claims with an invalid id are not used", World: fixture.Seen(one(), fixture.LeftBehindBy(fixture.Left("x").Given())), Want: fresh},
		{Name: "SC-50 a given claim of the set itself that was not set aside is not used",
			World: fixture.Seen(one(), fixture.LeftBehindBy(fixture.Left(fixture.Xs).By("uid-of-set").Given())), Want: fresh},
		{Name: "SC-50 a member on given claims is not created while another pod has its name",
			World: fixture.Seen(one(), fixture.LeftBehindBy(fixture.Left(fixture.Xs).Given().Beside())), Wait: spec.ForeignInterval},
		{Name: "SC-50 the slot of a member that waits for its name is not filled by another member",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.LeftBehindBy(fixture.Left(fixture.Xs).Given().Beside(), fixture.Left(fixture.Ys).Given())), Want: []string{names, takes(fixture.Ys)}, Wait: spec.ForeignInterval},
		{Name: "SC-50 a complete set uses no given claims", World: fixture.Seen(one(), fixture.LeftBehindBy(fixture.Left(fixture.Xs).Given()), fixture.A())},
	})
}
