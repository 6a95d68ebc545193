package rules_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func leavingB() *fixture.PodFixture { return fixture.B().NodeCordoned() }
func d() *fixture.PodFixture        { return fixture.Pod("d").On("n4").Ready() }

// ahead returns the line of a member that is created before others leave.
func ahead(id, leaving string) string {
	return "create pod db-" + id + ": Missing, to replace members on cordoned nodes: " + leaving + " > create persistentvolumeclaim db-data-" + id + ": Claim"
}

// retiresLeaving returns the lines of members that are retired from cordoned nodes.
func retiresLeaving(ids ...string) (lines []string) {
	for _, id := range ids {
		lines = append(lines, "patch persistentvolumeclaim db-data-"+id+": Retention, labeled enge.me/retained=Scaled > "+
			"delete pod db-"+id+": Retired, its node is cordoned, claims db-data-"+id)
	}
	return lines
}

func TestReplaceFirst(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "SC-43 a new member is created before a member on a cordoned node is retired", World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), fixture.B(), fixture.C()), Want: []string{ahead("f1", "db-a")}},
		{Name: "SC-43 a member on a cordoned node is retired when the new member is available", World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), fixture.B(), fixture.C(), d(), fixture.Budgeted(4)), Want: retiresLeaving("a")},
		{Name: "SC-43 a member on a cordoned node is kept while the new member is starting", World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), fixture.B(), fixture.C(), fixture.Starting("d"), fixture.Budgeted(4)), Wait: 9 * time.Minute},
		{Name: "SC-43 a new member that is Ready is not available before minReadySeconds have passed",
			World: fixture.Seen(fixture.Replacing().Change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }), fixture.LeavingA(), fixture.B(), fixture.C(), fixture.Pod("d").On("n4").ReadyFor(20*time.Second), fixture.Budgeted(4)),
			Wait:  40 * time.Second},
		{Name: "SC-43 a member on a cordoned node is kept while another member is missing",
			World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), fixture.Pod("b").On("n2").UnreadyFor(0), fixture.C(), d(), fixture.Budgeted(4)), Wait: 5 * time.Minute},
		{Name: "SC-43 an unready member on a cordoned node keeps its data until all replicas are available",
			World: fixture.Seen(fixture.Replacing(), fixture.Pod("a").On("n1").UnreadyFor(0).NodeCordoned(), fixture.B(), fixture.Pod("c").On("n3").UnreadyFor(0), d(), fixture.Budgeted(4)), Wait: 5 * time.Minute},
		{Name: "SC-43 an unready member on a cordoned node is retired when all replicas are available",
			World: fixture.Seen(fixture.Replacing(), fixture.Pod("a").On("n1").UnreadyFor(0).NodeCordoned(), fixture.B(), fixture.C(), d(), fixture.Budgeted(4)), Want: retiresLeaving("a"), Wait: 5 * time.Minute},
		{Name: "SC-43 a cordon has no effect with onEviction Replace", World: fixture.Seen(fixture.Set("db"), fixture.LeavingA(), fixture.B(), fixture.C())},
		{Name: "SC-43 a cordon has no effect with onEviction Keep", World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.LeavingA(), fixture.B(), fixture.C())},
		{Name: "SC-44 members on cordoned nodes are replaced one at a time without maxSurge", World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), leavingB(), fixture.C()), Want: []string{ahead("f1", "db-a, db-b")}},
		{Name: "SC-44 up to maxSurge members on cordoned nodes are replaced at a time", World: fixture.Seen(fixture.Replacing().Surge(2), fixture.LeavingA(), leavingB(), fixture.C().NodeCordoned()),
			Want: []string{ahead("f1", "db-a, db-b, db-c"), ahead("f2", "db-a, db-b, db-c")}},
		{Name: "SC-44 no other member is created while the new one is starting", World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), leavingB(), fixture.C(), fixture.Starting("d"), fixture.Budgeted(4)), Wait: 9 * time.Minute},
		{Name: "SC-44 one member is retired for one new member that is available", World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), leavingB(), fixture.C(), d(), fixture.Budgeted(4)), Want: retiresLeaving("a")},
		{Name: "SC-44 an update and a drain share the surge",
			World: fixture.Seen(fixture.Replacing().Surge(1), fixture.LeavingA(), fixture.B().Of("old"), fixture.C(), fixture.RevisionOfImage("old", "zero"), fixture.Starting("d"), fixture.Budgeted(4)), Wait: 9 * time.Minute},
		{Name: "SC-44 OrderedReady does not wait for an unready member on a cordoned node",
			World: fixture.Seen(fixture.Replacing().OrderedReady(), fixture.Pod("a").On("n1").UnreadyFor(0).NodeCordoned(), fixture.B(), fixture.C()), Want: []string{ahead("f1", "db-a")}, Wait: 5 * time.Minute},
		{Name: "SC-44 a set with OnDelete creates a new member first", World: fixture.Seen(fixture.Replacing().OnDelete(), fixture.LeavingA(), fixture.B(), fixture.C()), Want: []string{ahead("f1", "db-a")}},
		{Name: "SC-44 a new unschedulable member is not replaced while nodes are drained",
			World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), fixture.B(), fixture.C(), fixture.Pod("d").UnschedulableFor(time.Hour), fixture.Budgeted(4))},
		{Name: "SC-44 an unschedulable member that has run is replaced, because its volume may be the cause",
			World: fixture.Seen(fixture.Replacing().Replicas(4), fixture.LeavingA(), fixture.B(), fixture.C(), fixture.Pod("d").Annotated(v1alpha1.AnnotationUpdated, "Eviction").UnschedulableFor(time.Hour)),
			Want:  []string{fixture.Replaces("d", "f1", v1alpha1.LossPending)}},
		{Name: "SC-44 a lost member is replaced while a quota refuses a new member",
			World: fixture.Seen(fixture.Replacing(), fixture.LeavingA(), fixture.B().NodeGone(), fixture.C(), fixture.Refused(facts.ReasonMissing, "quota", 0)), Want: []string{fixture.Replaces("b", "f1", v1alpha1.LossNodeGone)}},
		{Name: "SC-45 surplus members are retired after an uncordon", World: fixture.Seen(fixture.Replacing(), fixture.A(), fixture.B(), fixture.C(), fixture.Pod("d").Aged(time.Minute).On("n4").Starting()), Want: retires("d"), Wait: 9 * time.Minute},
		{Name: "SC-45 a scale-down retires members on cordoned nodes first", World: fixture.Seen(fixture.Replacing().Replicas(2), fixture.A(), fixture.B(), fixture.C().NodeCordoned(), fixture.Budgeted(3)), Want: retiresLeaving("c")},
		{Name: "SC-45 a member that a user deleted has a successor and is not replaced again", World: fixture.Seen(fixture.Replacing(), fixture.LeavingA().Going(), fixture.B(), fixture.C(), d())},
		{Name: "SC-46 a member lost during a drain gets no second successor",
			World: fixture.Seen(fixture.Replacing(), fixture.A().NodeCordoned().NodeNotReadyFor(time.Hour), fixture.B(), fixture.C(), d()), Want: []string{fixture.DeletesLost("a", v1alpha1.LossNodeNotReady)}},
		{Name: "SC-46 a member whose Node is deleted during a drain gets no second successor", World: fixture.Seen(fixture.Replacing(), fixture.A().NodeGone(), fixture.B(), fixture.C(), fixture.Starting("d")),
			Want: []string{fixture.DeletesLost("a", v1alpha1.LossNodeGone)}, Wait: 9 * time.Minute},
		{Name: "SC-46 with two members lost and one successor created, one more is created",
			World: fixture.Seen(fixture.Replacing().MaxConcurrent("2"), fixture.A().NodeGone(), fixture.B().NodeGone(), fixture.C(), d()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone), fixture.DeletesLost("b", v1alpha1.LossNodeGone)}},
	})
}

func TestWhatIsSaidOfADrain(t *testing.T) {
	progressing, degraded := v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded
	roomless := fixture.Pod("d").UnschedulableFor(time.Hour)
	for _, r := range []struct{ name, condition, want string }{
		{"SC-44 Progressing lists the draining members and the pending member", progressing,
			"True Draining: 2 members on cordoned nodes will be retired when new members are available: db-a, db-b; not Ready: db-d (Unschedulable); to keep them: `kubectl uncordon n1 n2`"},
		{"SC-44 Degraded reports that new members are unschedulable", degraded,
			"True DrainBlocked: new members are unschedulable, and these members cannot leave their cordoned nodes without them: db-a, db-b; `kubectl -n ns describe pod db-d` shows what is missing; add capacity, or end the drain: `kubectl uncordon n1 n2`"},
	} {
		if got := fixture.Says(fixture.Told(fixture.Seen(fixture.Replacing(), fixture.LeavingA(), leavingB(), fixture.C(), roomless)), r.condition); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
	at := func(w *facts.World) string { return fixture.Says(fixture.Told(w), progressing) }
	if got, want := at(fixture.Seen(fixture.Replacing(), fixture.LeavingA().Of("old"), fixture.B().Of("old"), fixture.C(), d(), fixture.RevisionOfImage("old", "zero"))), "True Updating"; got[:len(want)] != want {
		t.Errorf("an update must be reported before a drain, but Progressing is %s", got)
	}
	if got, want := at(fixture.Seen(fixture.Replacing(), fixture.A(), fixture.B(), fixture.C())), "False Complete"; got[:len(want)] != want {
		t.Errorf("Progressing of a set at rest is %s", got)
	}
	soon := fixture.Pod("d").UnschedulableFor(time.Minute)
	if got := fixture.Says(fixture.Told(fixture.Seen(fixture.Replacing(), fixture.LeavingA(), fixture.B(), fixture.C(), soon)), degraded); got != "False Healthy: no problems detected" {
		t.Errorf("Degraded before pendingSeconds have passed is %s", got)
	}
}

// SC-46 SC-47 The policy for the claims of leaving members.
func TestClaimsOfMembersThatLeave(t *testing.T) {
	policies := fixture.Replacing().Retention(v1alpha1.RetainClaims, v1alpha1.DeleteClaims, v1alpha1.RetainClaims)
	w := fixture.Seen(policies, fixture.LeavingA(), fixture.B(), fixture.C(), d(), fixture.Budgeted(4))
	claim := fixture.FirstWritten(w).(*corev1.PersistentVolumeClaim)
	if claim.Labels[v1alpha1.LabelRetained] != fixture.Scaled || claim.Annotations[v1alpha1.AnnotationRetention] != string(v1alpha1.DeleteClaims) {
		t.Errorf("SC-46 the claim of a drained member has labels %v and annotations %v", claim.Labels, claim.Annotations)
	}
	w = fixture.Seen(policies, fixture.A().NodeCordoned().NodeNotReadyFor(time.Hour), fixture.B(), fixture.C(), d())
	p := fixture.PlanOf(w)
	if got := p.Steps.Strings(); !slices.Equal(got, []string{fixture.DeletesLost("a", v1alpha1.LossNodeNotReady)}) {
		t.Errorf("SC-46 the steps for a lost member are %q", got)
	}
}

// A set that was stored before the field existed is not changed.
func TestStoredSetsAreLeftAlone(t *testing.T) {
	for name, w := range map[string]*facts.World{
		"Replace": fixture.Seen(fixture.Set("db"), fixture.LeavingA(), fixture.B(), fixture.C()), "Keep": fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.LeavingA(), fixture.B(), fixture.C()),
		"none": fixture.Seen(fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.Replacement.OnEviction = "" }), fixture.LeavingA(), fixture.B(), fixture.C()),
	} {
		if p := fixture.PlanOf(w); len(p.Steps) > 0 || p.WantsLive() {
			t.Errorf("%s: the steps are %q, want none", name, p.Steps.Strings())
		}
		if w.Budget.Spec.MaxUnavailable.IntValue() != 1 || w.Budget.Spec.MinAvailable != nil {
			t.Errorf("%s: the budget is %v", name, w.Budget.Spec)
		}
	}
}
