package statefulcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

func TestEndedMembers(t *testing.T) {
	ended := func(age time.Duration) *podFixture { return pod("a").aged(age).on("n1").starting().failed() }
	bad := func(age time.Duration, things ...thing) *world {
		return seen(set("db").onDelete(), append(things, nowNeverReady, ended(age), oldB(), oldC(), oldImage())...)
	}
	check(t, []row{
		{name: "a member that ended and whose template is to blame is restarted on its data",
			world: bad(30 * time.Second), want: restarts("a"), failing: []string{"db-a"}},
		{name: "but not in a hurry", world: bad(30*time.Second - 1), failing: []string{"db-a"}, wait: 1},
		{name: "nor while that is refused", world: bad(time.Minute, refused(reasonUpdate, "policy", time.Minute)), failing: []string{"db-a"}, wait: time.Minute},
		{name: "one on a lost node is left to the rule for nodes",
			world: seen(set("db").onDelete(), nowNeverReady, ended(time.Minute).nodeNotReadyFor(time.Second), oldB(), oldC(), oldImage())},
		{name: "one of a good revision is lost", world: seen(set("db"), ended(time.Minute), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "one of a good revision that waits for its backoff does not come back under its name",
			world: seen(set("db"), ended(40*time.Second).inPlaceOf("x", 3), b(), c()), wait: 20 * time.Second},
	})
}

// A failure soon after a member became Ready may have the same cause as that of its predecessor.
func TestSettlingDown(t *testing.T) {
	again := func(age time.Duration) *podFixture { return pod("a").inPlaceOf("x", 3).aged(age).on("n1") }
	check(t, []row{
		{name: "a member that was Ready for a moment waits for its backoff",
			world: seen(set("db"), again(9*time.Minute).unreadyFor(5*time.Minute), b(), c()), wait: time.Minute},
		{name: "one that settled down starts from nothing",
			world: seen(set("db"), again(10*time.Minute).unreadyFor(5*time.Minute), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "on a node that is lost since long the backoff counts from the schedule",
			world: seen(set("db"), again(50*time.Second).starting().nodeNotReadyFor(time.Hour), b(), c()), wait: 10 * time.Second},
		{name: "and then it is lost",
			world: seen(set("db"), again(time.Minute).starting().nodeNotReadyFor(time.Hour), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "a member whose claim is gone and that waits for its backoff gets no empty one",
			world: seen(set("db"), again(50*time.Second).starting().withoutClaims(), b(), c()), wait: 10 * time.Second},
	})
	successor := planOf(seen(set("db"), again(9*time.Minute).unreadyFor(5*time.Minute).nodeGone(), b(), c())).Steps[0][0][1].Object
	if got := successor.GetAnnotations()[v1alpha1.AnnotationReplacements]; got != "4" {
		t.Errorf("after a member that did not settle down its successor is counted as %q, want 4", got)
	}
}

func TestAnInitContainerHasRunToo(t *testing.T) {
	member := pod("a").aged(time.Minute).on("n1").withoutClaims()
	member.pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{ContainerID: "x"}}
	check(t, []row{{name: "a member of which only an init container ran may have data",
		world: seen(set("db"), member, b(), c()),
		want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
			createsInPlaceOf("a", "f1")}}})
}
