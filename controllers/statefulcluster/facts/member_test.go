package facts_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestEndedMembers(t *testing.T) {
	ended := func(age time.Duration) *fixture.PodFixture {
		return fixture.Pod("a").Aged(age).On("n1").Starting().Failed()
	}
	bad := func(age time.Duration, things ...fixture.Thing) *facts.World {
		return fixture.Seen(fixture.Set("db").OnDelete(), append(things, fixture.NowNeverReady, ended(age), fixture.OldB(), fixture.OldC(), fixture.OldImage())...)
	}
	fixture.Check(t, []fixture.Row{
		{Name: "a pod that failed because of its template is recreated on its claims",
			World: bad(30 * time.Second), Want: fixture.Restarts("a"), Failing: []string{"db-a"}},
		{Name: "a pod that failed because of its template is not recreated before its backoff", World: bad(30*time.Second - 1), Failing: []string{"db-a"}, Wait: 1},
		{Name: "a pod that failed because of its template is not deleted while updates are refused", World: bad(time.Minute, fixture.Refused(facts.ReasonUpdate, "policy", time.Minute)), Failing: []string{"db-a"}, Wait: time.Minute},
		{Name: "a failed pod on a lost node is handled as a lost member",
			World: fixture.Seen(fixture.Set("db").OnDelete(), fixture.NowNeverReady, ended(time.Minute).NodeNotReadyFor(time.Second), fixture.OldB(), fixture.OldC(), fixture.OldImage())},
		{Name: "a failed pod with a good revision is lost", World: fixture.Seen(fixture.Set("db"), ended(time.Minute), fixture.B(), fixture.C()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossFailed)}},
		{Name: "a failed pod with a good revision is not recreated during its backoff",
			World: fixture.Seen(fixture.Set("db"), ended(40*time.Second).InPlaceOf("x", 3), fixture.B(), fixture.C()), Wait: 20 * time.Second},
	})
}

func TestAnInitContainerHasRunToo(t *testing.T) {
	member := fixture.Pod("a").Aged(time.Minute).On("n1").WithoutClaims()
	member.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{ContainerID: "x"}}
	fixture.Check(t, []fixture.Row{{Name: "a member whose init container ran may have data",
		World: fixture.Seen(fixture.Set("db"), member, fixture.B(), fixture.C()),
		Want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
			fixture.CreatesInPlaceOf("a", "f1")}}})
}

func TestReplacementsAreCounted(t *testing.T) {
	for _, r := range []struct {
		name string
		old  *fixture.PodFixture
		want string
	}{
		{"the first replacement", fixture.A().NodeGone(), "1"},
		{"the successor of a replacement that was never Ready", fixture.Pod("a").InPlaceOf("x", 4).On("n1").Starting().NodeGone(), "5"},
		{"the successor of a replacement that was Ready", fixture.A().InPlaceOf("x", 4).NodeGone(), "1"},
	} {
		t.Run(r.name, func(t *testing.T) {
			chain := fixture.PlanOf(fixture.Seen(fixture.Set("db"), r.old, fixture.B(), fixture.C())).Steps[0][0]
			if got := chain[1].Object.GetAnnotations()[v1alpha1.AnnotationReplacements]; got != r.want {
				t.Errorf("%s: the replacement is number %q, want %q", chain[1], got, r.want)
			}
		})
	}
}
