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

// A failure soon after a member became Ready may have the same cause as that of its predecessor.
func TestSettlingDown(t *testing.T) {
	again := func(age time.Duration) *fixture.PodFixture {
		return fixture.Pod("a").InPlaceOf("x", 3).Aged(age).On("n1")
	}
	fixture.Check(t, []fixture.Row{
		{Name: "a replacement that was Ready only briefly waits for its backoff",
			World: fixture.Seen(fixture.Set("db"), again(9*time.Minute).UnreadyFor(5*time.Minute), fixture.B(), fixture.C()), Wait: time.Minute},
		{Name: "a replacement that was Ready for long enough has no backoff",
			World: fixture.Seen(fixture.Set("db"), again(10*time.Minute).UnreadyFor(5*time.Minute), fixture.B(), fixture.C()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossUnready)}},
		{Name: "the backoff on a node that was lost long ago starts when the pod is scheduled",
			World: fixture.Seen(fixture.Set("db"), again(50*time.Second).Starting().NodeNotReadyFor(time.Hour), fixture.B(), fixture.C()), Wait: 10 * time.Second},
		{Name: "a member on a lost node is replaced when its backoff has passed",
			World: fixture.Seen(fixture.Set("db"), again(time.Minute).Starting().NodeNotReadyFor(time.Hour), fixture.B(), fixture.C()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{Name: "no empty claim is created for a member that lost its claim and waits for its backoff",
			World: fixture.Seen(fixture.Set("db"), again(50*time.Second).Starting().WithoutClaims(), fixture.B(), fixture.C()), Wait: 10 * time.Second},
	})
	successor := fixture.PlanOf(fixture.Seen(fixture.Set("db"), again(9*time.Minute).UnreadyFor(5*time.Minute).NodeGone(), fixture.B(), fixture.C())).Steps[0][0][1].Object
	if got := successor.GetAnnotations()[v1alpha1.AnnotationReplacements]; got != "4" {
		t.Errorf("the successor of a member that was Ready only briefly is number %q, want 4", got)
	}
}

// claimedFor returns a member that has been unschedulable for a day, with claims that were created
// that long ago.
func claimedFor(id string, d time.Duration) *fixture.PodFixture {
	return fixture.Pod(id).UnschedulableFor(24 * time.Hour).ClaimsAre(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = fixture.Ago(d) })
}

// deadlines are the losses that have a deadline.
var deadlines = []struct {
	reason   v1alpha1.LossReason
	deadline time.Duration
	member   func(age time.Duration) *fixture.PodFixture
}{
	{v1alpha1.LossNodeNotReady, 30 * time.Second, func(d time.Duration) *fixture.PodFixture { return fixture.A().NodeNotReadyFor(d) }},
	{v1alpha1.LossUnready, 300 * time.Second, func(d time.Duration) *fixture.PodFixture { return fixture.Pod("a").On("n1").UnreadyFor(d) }},
	{v1alpha1.LossStartup, 600 * time.Second, func(d time.Duration) *fixture.PodFixture { return fixture.Pod("a").Aged(d).On("n1").Starting() }},
	{v1alpha1.LossPending, 300 * time.Second, func(d time.Duration) *fixture.PodFixture { return fixture.Pod("a").UnschedulableFor(d) }},
}

func TestBackoff(t *testing.T) {
	// b and c are healthy; a fills the slot of x, as the nth successive replacement.
	nth := func(n int, age time.Duration) *facts.World {
		return fixture.Seen(fixture.Set("db"), fixture.Pod("a").InPlaceOf("x", n).Aged(age).On("n1").Starting(), fixture.B(), fixture.C())
	}
	const startup = 600 * time.Second
	again := []string{fixture.Replaces("a", "f1", v1alpha1.LossStartup)}
	fixture.Check(t, []fixture.Row{
		{Name: "the first replacement in a slot is replaced without backoff", World: nth(1, startup), Want: again},
		{Name: "the second replacement in a slot is kept for up to 30 seconds longer", World: nth(2, startup+30*time.Second-1), Wait: 1},
		{Name: "the second replacement in a slot is replaced after 30 more seconds", World: nth(2, startup+30*time.Second), Want: again},
		{Name: "the third replacement in a slot is kept for up to a minute longer", World: nth(3, startup+time.Minute-1), Wait: 1},
		{Name: "the third replacement in a slot is replaced after one more minute", World: nth(3, startup+time.Minute), Want: again},
		{Name: "the ninth replacement in a slot is kept for up to an hour longer", World: nth(9, startup+time.Hour-1), Wait: 1},
		{Name: "the backoff of replacements is at most one hour", World: nth(10000, startup+time.Hour), Want: again},
		{Name: "a slot with a member that was Ready has no backoff",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").InPlaceOf("x", 5).On("n1").UnreadyFor(300*time.Second), fixture.B(), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossUnready)}},
		{Name: "a replacement on a lost Node waits for the backoff of its slot",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").InPlaceOf("x", 3).Aged(50*time.Second).On("n1").Starting().NodeGone(), fixture.B(), fixture.C()),
			Wait:  10 * time.Second},
		{Name: "an invalid count of replacements is ignored",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").InPlaceOf("x", 1).Annotated(v1alpha1.AnnotationReplacements, "many").Aged(startup).On("n1").Starting(), fixture.B(), fixture.C()),
			Want:  again},
	})
}

func TestATemplateIsToBlame(t *testing.T) {
	hour := 50 * time.Minute
	fixture.Check(t, []fixture.Row{
		{Name: "SC-41 an unready member is not replaced if no member of its revision was ever Ready",
			World:   withoutUpdates(fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.Pod("a").On("n1").Starting(), fixture.B().Of("old"), fixture.C().Of("old"), fixture.RevisionOfImage("old", "zero"))),
			Failing: []string{"db-a"}},
		{Name: "an unschedulable member is not replaced if no member of its revision was ever Ready",
			World:   withoutUpdates(fixture.Seen(fixture.Set("db"), fixture.NowNeverReady, fixture.Pod("a").UnschedulableFor(hour), fixture.B().Of("old"), fixture.C().Of("old"), fixture.RevisionOfImage("old", "zero"))),
			Failing: []string{"db-a"}},
		{Name: "an unready member is replaced if a member of its revision was Ready",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").UnreadyFor(hour), fixture.B(), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossUnready)}},
		{Name: "a member that was not Ready since its update is not replaced",
			World:   fixture.Seen(fixture.Set("db"), fixture.Pod("a").Recreated().On("n1").Starting(), fixture.B(), fixture.C()),
			Failing: []string{"db-a"}},
		{Name: "an unready member that was Ready since its update is replaced",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").Recreated().On("n1").UnreadyFor(hour), fixture.B(), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossUnready)}},
		{Name: "an unready member is not replaced during its in-place update",
			World:   fixture.Seen(fixture.Set("db"), fixture.Pod("a").Patching(`{}`).On("n1").UnreadyFor(hour), fixture.B(), fixture.C()),
			Failing: []string{"db-a"}},
		{Name: "a failing template is not reported before the deadline",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").Recreated().Aged(time.Minute).On("n1").Starting(), fixture.B(), fixture.C()),
			Wait:  9 * time.Minute},
		{Name: "a member on a lost node is replaced even if its template fails",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").Recreated().On("n1").Starting().NodeNotReadyFor(time.Minute), fixture.B(), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{Name: "an unready member whose revision was deleted is not replaced",
			World:   fixture.Seen(fixture.Set("db").OnDelete(), fixture.Pod("a").Labelled(spec.LabelRevision, "forgotten").On("n1").UnreadyFor(hour), fixture.B(), fixture.C()),
			Failing: []string{"db-a"}},
	})
}

// withoutUpdates disables updates, so that a row shows only the effect of a loss.
func withoutUpdates(w *facts.World) *facts.World {
	w.Set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
	return w
}
