package statefulcluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

func leavingA() *podFixture { return a().nodeCordoned() }
func leavingB() *podFixture { return b().nodeCordoned() }
func d() *podFixture        { return pod("d").on("n4").ready() }

func replacing() *setFixture { return set("db").replacesFirst() }

// budgeted sets the budget that is correct while that many members are wanted.
func budgeted(wanted int) thing {
	return with(func(w *facts.World) { w.Budget = children.BuildBudget(w.Settings, wanted) })
}

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
	check(t, []row{
		{name: "SC-43 a new member is created before a member on a cordoned node is retired", world: seen(replacing(), leavingA(), b(), c()), want: []string{ahead("f1", "db-a")}},
		{name: "SC-43 a member on a cordoned node is retired when the new member is available", world: seen(replacing(), leavingA(), b(), c(), d(), budgeted(4)), want: retiresLeaving("a")},
		{name: "SC-43 a member on a cordoned node is kept while the new member is starting", world: seen(replacing(), leavingA(), b(), c(), starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-43 a new member that is Ready is not available before minReadySeconds have passed",
			world: seen(replacing().change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }), leavingA(), b(), c(), pod("d").on("n4").readyFor(20*time.Second), budgeted(4)),
			wait:  40 * time.Second},
		{name: "SC-43 a member on a cordoned node is kept while another member is missing",
			world: seen(replacing(), leavingA(), pod("b").on("n2").unreadyFor(0), c(), d(), budgeted(4)), wait: 5 * time.Minute},
		{name: "SC-43 an unready member on a cordoned node keeps its data until all replicas are available",
			world: seen(replacing(), pod("a").on("n1").unreadyFor(0).nodeCordoned(), b(), pod("c").on("n3").unreadyFor(0), d(), budgeted(4)), wait: 5 * time.Minute},
		{name: "SC-43 an unready member on a cordoned node is retired when all replicas are available",
			world: seen(replacing(), pod("a").on("n1").unreadyFor(0).nodeCordoned(), b(), c(), d(), budgeted(4)), want: retiresLeaving("a"), wait: 5 * time.Minute},
		{name: "SC-43 a cordon has no effect with onEviction Replace", world: seen(set("db"), leavingA(), b(), c())},
		{name: "SC-43 a cordon has no effect with onEviction Keep", world: seen(set("db").keepsEvicted(), leavingA(), b(), c())},
		{name: "SC-44 members on cordoned nodes are replaced one at a time without maxSurge", world: seen(replacing(), leavingA(), leavingB(), c()), want: []string{ahead("f1", "db-a, db-b")}},
		{name: "SC-44 up to maxSurge members on cordoned nodes are replaced at a time", world: seen(replacing().surge(2), leavingA(), leavingB(), c().nodeCordoned()),
			want: []string{ahead("f1", "db-a, db-b, db-c"), ahead("f2", "db-a, db-b, db-c")}},
		{name: "SC-44 no other member is created while the new one is starting", world: seen(replacing(), leavingA(), leavingB(), c(), starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-44 one member is retired for one new member that is available", world: seen(replacing(), leavingA(), leavingB(), c(), d(), budgeted(4)), want: retiresLeaving("a")},
		{name: "SC-44 an update and a drain share the surge",
			world: seen(replacing().surge(1), leavingA(), b().of("old"), c(), revisionOfImage("old", "zero"), starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-44 OrderedReady does not wait for an unready member on a cordoned node",
			world: seen(replacing().orderedReady(), pod("a").on("n1").unreadyFor(0).nodeCordoned(), b(), c()), want: []string{ahead("f1", "db-a")}, wait: 5 * time.Minute},
		{name: "SC-44 a set with OnDelete creates a new member first", world: seen(replacing().onDelete(), leavingA(), b(), c()), want: []string{ahead("f1", "db-a")}},
		{name: "SC-44 a new unschedulable member is not replaced while nodes are drained",
			world: seen(replacing(), leavingA(), b(), c(), pod("d").unschedulableFor(time.Hour), budgeted(4))},
		{name: "SC-44 an unschedulable member that has run is replaced, because its volume may be the cause",
			world: seen(replacing().replicas(4), leavingA(), b(), c(), pod("d").annotated(v1alpha1.AnnotationUpdated, "Eviction").unschedulableFor(time.Hour)),
			want:  []string{replaces("d", "f1", v1alpha1.LossPending)}},
		{name: "SC-44 a lost member is replaced while a quota refuses a new member",
			world: seen(replacing(), leavingA(), b().nodeGone(), c(), refused(facts.ReasonMissing, "quota", 0)), want: []string{replaces("b", "f1", v1alpha1.LossNodeGone)}},
		{name: "SC-45 surplus members are retired after an uncordon", world: seen(replacing(), a(), b(), c(), pod("d").aged(time.Minute).on("n4").starting()), want: retires("d"), wait: 9 * time.Minute},
		{name: "SC-45 a scale-down retires members on cordoned nodes first", world: seen(replacing().replicas(2), a(), b(), c().nodeCordoned(), budgeted(3)), want: retiresLeaving("c")},
		{name: "SC-45 a member that a user deleted has a successor and is not replaced again", world: seen(replacing(), leavingA().going(), b(), c(), d())},
		{name: "SC-46 a member lost during a drain gets no second successor",
			world: seen(replacing(), a().nodeCordoned().nodeNotReadyFor(time.Hour), b(), c(), d()), want: []string{deletesLost("a", v1alpha1.LossNodeNotReady)}},
		{name: "SC-46 a member whose Node is deleted during a drain gets no second successor", world: seen(replacing(), a().nodeGone(), b(), c(), starting("d")),
			want: []string{deletesLost("a", v1alpha1.LossNodeGone)}, wait: 9 * time.Minute},
		{name: "SC-46 with two members lost and one successor created, one more is created",
			world: seen(replacing().maxConcurrent("2"), a().nodeGone(), b().nodeGone(), c(), d()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), deletesLost("b", v1alpha1.LossNodeGone)}},
	})
}

// An update does not recreate pods on cordoned nodes on which they could not start again.
func TestUpdatesOfMembersThatLeave(t *testing.T) {
	old := revisionWith("old", func(d *children.RevisionData) { d.Template.Spec.Containers[0].Command = []string{"old"} })
	check(t, []row{
		{name: "SC-43 a member on a cordoned node is not recreated for an update",
			world: seen(replacing(), leavingA().of("old"), b(), c(), old, starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-43 an unready member on a cordoned node is recreated for an update",
			world: seen(replacing(), pod("a").on("n1").unreadyFor(0).nodeCordoned().of("old"), b(), c(), old, starting("d"), budgeted(4)), want: recreates("a"), wait: 5 * time.Minute},
		{name: "SC-43 a member on a cordoned node is updated in place",
			world: seen(replacing(), leavingA().of("old"), b(), c(), revisionOfImage("old", "zero"), starting("d"), budgeted(4)), want: updatesInPlace("a"), wait: 9 * time.Minute},
	})
}

// A partition keeps members at a revision. A leaving member no longer counts.
func TestSuccessorsUnderAPartition(t *testing.T) {
	partition := func() *setFixture {
		s := replacing().rolling(v1alpha1.RollingUpdate{Partition: 3})
		s.Status.CurrentRevision = "old"
		return s
	}
	w := seen(partition(), leavingA().of("old"), b().of("old"), c().of("old"), revisionOfImage("old", "zero"))
	if got := facts.RevisionOf(firstWritten(w).(*corev1.Pod)); got != "old" {
		t.Errorf("the successor has revision %s, want old because of the partition", got)
	}
	tolerant := revisionWith("old", func(d *children.RevisionData) {
		d.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	w = seen(partition(), leavingA().of("old"), b().of("old"), c().of("old"), tolerant)
	if p := planOf(w); len(p.Steps) > 0 {
		t.Errorf("SC-44 new members would start on cordoned nodes, but the steps are\n  %s", p.Steps.Strings())
	}
	want := "True DrainBlocked: members stay on cordoned nodes and their evictions are refused: db-a; new members could start there again, because " +
		"rollingUpdate.partition keeps members at revision old, whose template sets nodeName or tolerates cordoned nodes; lower the partition"
	if got := says(told(w), v1alpha1.ConditionDegraded); got != want {
		t.Errorf("SC-44 condition Degraded is\n  %s\nwant\n  %s", got, want)
	}
}

// SC-43 The budget allows no eviction of a Ready member, even while the set has an additional
// member.
func TestTheBudgetOfASetThatReplacesFirst(t *testing.T) {
	budget := func(things ...thing) policyv1.PodDisruptionBudgetSpec {
		w := seen(replacing(), append(things, with(func(w *facts.World) { w.Budget = nil }))...)
		return firstWritten(w).(*policyv1.PodDisruptionBudget).Spec
	}
	if b := budget(a(), b(), c()); b.MaxUnavailable != nil || b.MinAvailable.IntValue() != 3 {
		t.Errorf("SC-43 the budget of a set at rest is %v", b)
	}
	if b := budget(leavingA(), b(), c(), starting("d")); b.MaxUnavailable != nil || b.MinAvailable.IntValue() != 4 {
		t.Errorf("SC-43 the budget during a drain is %v", b)
	}
	check(t, []row{{name: "SC-43 the budget changes when onEviction changes to ReplaceFirst", world: seen(replacing(), a(), b(), c(),
		with(func(w *facts.World) { w.Budget = children.BuildBudget(seen(set("db")).Settings, 3) })), want: []string{"patch poddisruptionbudget db: Budget"}}})
}

func TestWhatIsSaidOfADrain(t *testing.T) {
	progressing, degraded := v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded
	roomless := pod("d").unschedulableFor(time.Hour)
	for _, r := range []struct{ name, condition, want string }{
		{"SC-44 Progressing lists the draining members and the pending member", progressing,
			"True Draining: 2 members on cordoned nodes will be retired when new members are available: db-a, db-b; not Ready: db-d (Unschedulable); to keep them: `kubectl uncordon n1 n2`"},
		{"SC-44 Degraded reports that new members are unschedulable", degraded,
			"True DrainBlocked: new members are unschedulable, and these members cannot leave their cordoned nodes without them: db-a, db-b; `kubectl -n ns describe pod db-d` shows what is missing; add capacity, or end the drain: `kubectl uncordon n1 n2`"},
	} {
		if got := says(told(seen(replacing(), leavingA(), leavingB(), c(), roomless)), r.condition); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
	at := func(w *facts.World) string { return says(told(w), progressing) }
	if got, want := at(seen(replacing(), leavingA().of("old"), b().of("old"), c(), d(), revisionOfImage("old", "zero"))), "True Updating"; got[:len(want)] != want {
		t.Errorf("an update must be reported before a drain, but Progressing is %s", got)
	}
	if got, want := at(seen(replacing(), a(), b(), c())), "False Complete"; got[:len(want)] != want {
		t.Errorf("Progressing of a set at rest is %s", got)
	}
	soon := pod("d").unschedulableFor(time.Minute)
	if got := says(told(seen(replacing(), leavingA(), b(), c(), soon)), degraded); got != "False Healthy: no problems detected" {
		t.Errorf("Degraded before pendingSeconds have passed is %s", got)
	}
}

// SC-43 No member is retired for a Node that is cordoned only in the cache.
func TestACacheThatShowsACordon(t *testing.T) {
	s := newStage(t, three().replacesFirst())
	s.settle(2 * time.Second)
	kubelet.Cordon(s.Cluster, "n1", true)
	s.look()
	kubelet.Cordon(s.Cluster, "n1", false) // the cache does not show it yet
	s.pass()
	if n := len(kubelet.Pods(s.Cluster)); n != 3 {
		t.Errorf("SC-43 there are %d pods, want 3", n)
	}
	w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true})
	if i := slices.IndexFunc(w.Members, func(m *facts.Member) bool { return m.Node.Cordoned }); i >= 0 {
		t.Errorf("SC-43 %s is on a cordoned node", w.Members[i].Name())
	}
}

// SC-46 SC-47 The policy for the claims of leaving members.
func TestClaimsOfMembersThatLeave(t *testing.T) {
	policies := replacing().retention(v1alpha1.RetainClaims, v1alpha1.DeleteClaims, v1alpha1.RetainClaims)
	w := seen(policies, leavingA(), b(), c(), d(), budgeted(4))
	claim := firstWritten(w).(*corev1.PersistentVolumeClaim)
	if claim.Labels[v1alpha1.LabelRetained] != scaled || claim.Annotations[v1alpha1.AnnotationRetention] != string(v1alpha1.DeleteClaims) {
		t.Errorf("SC-46 the claim of a drained member has labels %v and annotations %v", claim.Labels, claim.Annotations)
	}
	w = seen(policies, a().nodeCordoned().nodeNotReadyFor(time.Hour), b(), c(), d())
	p := planOf(w)
	if got := p.Steps.Strings(); !slices.Equal(got, []string{deletesLost("a", v1alpha1.LossNodeNotReady)}) {
		t.Errorf("SC-46 the steps for a lost member are %q", got)
	}
}

// A set that was stored before the field existed is not changed.
func TestStoredSetsAreLeftAlone(t *testing.T) {
	for name, w := range map[string]*facts.World{
		"Replace": seen(set("db"), leavingA(), b(), c()), "Keep": seen(set("db").keepsEvicted(), leavingA(), b(), c()),
		"none": seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.Replacement.OnEviction = "" }), leavingA(), b(), c()),
	} {
		if p := planOf(w); len(p.Steps) > 0 || p.WantsLive() {
			t.Errorf("%s: the steps are %q, want none", name, p.Steps.Strings())
		}
		if w.Budget.Spec.MaxUnavailable.IntValue() != 1 || w.Budget.Spec.MinAvailable != nil {
			t.Errorf("%s: the budget is %v", name, w.Budget.Spec)
		}
	}
}
