package statefulcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

func TestEndedMembers(t *testing.T) {
	ended := func(age time.Duration) *podFixture { return pod("a").aged(age).on("n1").starting().failed() }
	bad := func(age time.Duration, things ...thing) *facts.World {
		return seen(set("db").onDelete(), append(things, nowNeverReady, ended(age), oldB(), oldC(), oldImage())...)
	}
	check(t, []row{
		{name: "a pod that failed because of its template is recreated on its claims",
			world: bad(30 * time.Second), want: restarts("a"), failing: []string{"db-a"}},
		{name: "a pod that failed because of its template is not recreated before its backoff", world: bad(30*time.Second - 1), failing: []string{"db-a"}, wait: 1},
		{name: "a pod that failed because of its template is not deleted while updates are refused", world: bad(time.Minute, refused(facts.ReasonUpdate, "policy", time.Minute)), failing: []string{"db-a"}, wait: time.Minute},
		{name: "a failed pod on a lost node is handled as a lost member",
			world: seen(set("db").onDelete(), nowNeverReady, ended(time.Minute).nodeNotReadyFor(time.Second), oldB(), oldC(), oldImage())},
		{name: "a failed pod with a good revision is lost", world: seen(set("db"), ended(time.Minute), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "a failed pod with a good revision is not recreated during its backoff",
			world: seen(set("db"), ended(40*time.Second).inPlaceOf("x", 3), b(), c()), wait: 20 * time.Second},
	})
}

// A failure soon after a member became Ready may have the same cause as that of its predecessor.
func TestSettlingDown(t *testing.T) {
	again := func(age time.Duration) *podFixture { return pod("a").inPlaceOf("x", 3).aged(age).on("n1") }
	check(t, []row{
		{name: "a replacement that was Ready only briefly waits for its backoff",
			world: seen(set("db"), again(9*time.Minute).unreadyFor(5*time.Minute), b(), c()), wait: time.Minute},
		{name: "a replacement that was Ready for long enough has no backoff",
			world: seen(set("db"), again(10*time.Minute).unreadyFor(5*time.Minute), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "the backoff on a node that was lost long ago starts when the pod is scheduled",
			world: seen(set("db"), again(50*time.Second).starting().nodeNotReadyFor(time.Hour), b(), c()), wait: 10 * time.Second},
		{name: "a member on a lost node is replaced when its backoff has passed",
			world: seen(set("db"), again(time.Minute).starting().nodeNotReadyFor(time.Hour), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "no empty claim is created for a member that lost its claim and waits for its backoff",
			world: seen(set("db"), again(50*time.Second).starting().withoutClaims(), b(), c()), wait: 10 * time.Second},
	})
	successor := planOf(seen(set("db"), again(9*time.Minute).unreadyFor(5*time.Minute).nodeGone(), b(), c())).Steps[0][0][1].Object
	if got := successor.GetAnnotations()[v1alpha1.AnnotationReplacements]; got != "4" {
		t.Errorf("the successor of a member that was Ready only briefly is number %q, want 4", got)
	}
}

func TestAnInitContainerHasRunToo(t *testing.T) {
	member := pod("a").aged(time.Minute).on("n1").withoutClaims()
	member.pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{ContainerID: "x"}}
	check(t, []row{{name: "a member whose init container ran may have data",
		world: seen(set("db"), member, b(), c()),
		want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
			createsInPlaceOf("a", "f1")}}})
}
