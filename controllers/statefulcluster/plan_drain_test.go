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
)

func leavingA() *podFixture { return a().nodeCordoned() }
func leavingB() *podFixture { return b().nodeCordoned() }
func d() *podFixture        { return pod("d").on("n4").ready() }

func replacing() *setFixture { return set("db").replacesFirst() }

// budgeted sets the budget that is correct while that many members are wanted.
func budgeted(wanted int) thing {
	return with(func(w *world) { w.budget = buildBudget(w, wanted) })
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
		{name: "SC-43 a new member is made before one leaves its cordoned node", world: seen(replacing(), leavingA(), b(), c()), want: []string{ahead("f1", "db-a")}},
		{name: "SC-43 it leaves when the new one is available", world: seen(replacing(), leavingA(), b(), c(), d(), budgeted(4)), want: retiresLeaving("a")},
		{name: "SC-43 and not before", world: seen(replacing(), leavingA(), b(), c(), starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-43 Ready is not yet available, with minReadySeconds",
			world: seen(replacing().change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }), leavingA(), b(), c(), pod("d").on("n4").readyFor(20*time.Second), budgeted(4)),
			wait:  40 * time.Second},
		{name: "SC-43 nor while another member is missing in its place",
			world: seen(replacing(), leavingA(), pod("b").on("n2").unreadyFor(0), c(), d(), budgeted(4)), wait: 5 * time.Minute},
		{name: "SC-43 one that does not serve stays for its data until all replicas are available",
			world: seen(replacing(), pod("a").on("n1").unreadyFor(0).nodeCordoned(), b(), pod("c").on("n3").unreadyFor(0), d(), budgeted(4)), wait: 5 * time.Minute},
		{name: "SC-43 and goes then",
			world: seen(replacing(), pod("a").on("n1").unreadyFor(0).nodeCordoned(), b(), c(), d(), budgeted(4)), want: retiresLeaving("a"), wait: 5 * time.Minute},
		{name: "SC-43 with Replace a cordon means nothing", world: seen(set("db"), leavingA(), b(), c())},
		{name: "SC-43 nor with Keep", world: seen(set("db").keepsEvicted(), leavingA(), b(), c())},
		{name: "SC-44 one at a time, if there is no maxSurge", world: seen(replacing(), leavingA(), leavingB(), c()), want: []string{ahead("f1", "db-a, db-b")}},
		{name: "SC-44 as many at a time as maxSurge says", world: seen(replacing().surge(2), leavingA(), leavingB(), c().nodeCordoned()),
			want: []string{ahead("f1", "db-a, db-b, db-c"), ahead("f2", "db-a, db-b, db-c")}},
		{name: "SC-44 no more while the new one is not there yet", world: seen(replacing(), leavingA(), leavingB(), c(), starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-44 one leaves for one that is available", world: seen(replacing(), leavingA(), leavingB(), c(), d(), budgeted(4)), want: retiresLeaving("a")},
		{name: "SC-44 an update and a drain share the surge",
			world: seen(replacing().surge(1), leavingA(), b().of("old"), c(), revisionOfImage("old", "zero"), starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-44 OrderedReady does not wait for one that leaves",
			world: seen(replacing().orderedReady(), pod("a").on("n1").unreadyFor(0).nodeCordoned(), b(), c()), want: []string{ahead("f1", "db-a")}, wait: 5 * time.Minute},
		{name: "SC-44 a set with OnDelete replaces first, too", world: seen(replacing().onDelete(), leavingA(), b(), c()), want: []string{ahead("f1", "db-a")}},
		{name: "SC-44 a new member that finds no room is not replaced while nodes are drained",
			world: seen(replacing(), leavingA(), b(), c(), pod("d").unschedulableFor(time.Hour), budgeted(4))},
		{name: "SC-44 one that has run is: its volume may be what finds no room",
			world: seen(replacing().replicas(4), leavingA(), b(), c(), pod("d").annotated(v1alpha1.AnnotationUpdated, "Eviction").unschedulableFor(time.Hour)),
			want:  []string{replaces("d", "f1", v1alpha1.LossPending)}},
		{name: "SC-44 a lost member does not wait for a new one that a quota refuses",
			world: seen(replacing(), leavingA(), b().nodeGone(), c(), refused(reasonMissing, "quota", 0)), want: []string{replaces("b", "f1", v1alpha1.LossNodeGone)}},
		{name: "SC-45 after an uncordon what is too much is scaled down", world: seen(replacing(), a(), b(), c(), pod("d").aged(time.Minute).on("n4").starting()), want: retires("d"), wait: 9 * time.Minute},
		{name: "SC-45 a scale-down takes members of cordoned nodes before others", world: seen(replacing().replicas(2), a(), b(), c().nodeCordoned(), budgeted(3)), want: retiresLeaving("c")},
		{name: "SC-45 a member that is deleted by others has its successor already", world: seen(replacing(), leavingA().going(), b(), c(), d())},
		{name: "SC-46 a member that is lost while it leaves is lost, and its successor is there",
			world: seen(replacing(), a().nodeCordoned().nodeNotReadyFor(time.Hour), b(), c(), d()), want: []string{deletesLost("a", v1alpha1.LossNodeNotReady)}},
		{name: "SC-46 with a machine that is gone, too", world: seen(replacing(), a().nodeGone(), b(), c(), starting("d")),
			want: []string{deletesLost("a", v1alpha1.LossNodeGone)}, wait: 9 * time.Minute},
		{name: "SC-46 of two that are lost one gets a successor, and the other has one",
			world: seen(replacing().maxConcurrent("2"), a().nodeGone(), b().nodeGone(), c(), d()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), deletesLost("b", v1alpha1.LossNodeGone)}},
	})
}

// An update does not recreate pods on cordoned nodes on which they could not start again.
func TestUpdatesOfMembersThatLeave(t *testing.T) {
	old := revisionWith("old", func(d *revisionData) { d.Template.Spec.Containers[0].Command = []string{"old"} })
	check(t, []row{
		{name: "SC-43 one that would be recreated is left to its successor",
			world: seen(replacing(), leavingA().of("old"), b(), c(), old, starting("d"), budgeted(4)), wait: 9 * time.Minute},
		{name: "SC-43 one that serves no one is not",
			world: seen(replacing(), pod("a").on("n1").unreadyFor(0).nodeCordoned().of("old"), b(), c(), old, starting("d"), budgeted(4)), want: recreates("a"), wait: 5 * time.Minute},
		{name: "SC-43 nor one whose pod stays",
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
	if got := revisionOf(firstWritten(w).(*corev1.Pod)); got != "old" {
		t.Errorf("the successor gets revision %s, and the partition keeps three members at old", got)
	}
	tolerant := revisionWith("old", func(d *revisionData) {
		d.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	w = seen(partition(), leavingA().of("old"), b().of("old"), c().of("old"), tolerant)
	if p := planOf(w); len(p.Steps) > 0 {
		t.Errorf("SC-44 new members would have to go again, and it does\n  %s", p.Steps.Strings())
	}
	want := "True DrainBlocked: members stay on cordoned nodes and their evictions are refused: db-a; new members could start there again, because " +
		"rollingUpdate.partition keeps members at revision old, whose template sets nodeName or tolerates cordoned nodes; lower the partition"
	if got := says(told(w), v1alpha1.ConditionDegraded); got != want {
		t.Errorf("SC-44 it says\n  %s\nwant\n  %s", got, want)
	}
}

// SC-43 The budget allows no eviction of a Ready member, even while the set has an additional
// member.
func TestTheBudgetOfASetThatReplacesFirst(t *testing.T) {
	budget := func(things ...thing) policyv1.PodDisruptionBudgetSpec {
		w := seen(replacing(), append(things, with(func(w *world) { w.budget = nil }))...)
		return firstWritten(w).(*policyv1.PodDisruptionBudget).Spec
	}
	if b := budget(a(), b(), c()); b.MaxUnavailable != nil || b.MinAvailable.IntValue() != 3 {
		t.Errorf("SC-43 at rest the budget is %v", b)
	}
	if b := budget(leavingA(), b(), c(), starting("d")); b.MaxUnavailable != nil || b.MinAvailable.IntValue() != 4 {
		t.Errorf("SC-43 while one leaves the budget is %v", b)
	}
	check(t, []row{{name: "SC-43 a set that takes to it changes its budget", world: seen(replacing(), a(), b(), c(),
		with(func(w *world) { w.budget = buildBudget(seen(set("db")), 3) })), want: []string{"patch poddisruptionbudget db: Budget"}}})
}

func TestWhatIsSaidOfADrain(t *testing.T) {
	progressing, degraded := v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded
	roomless := pod("d").unschedulableFor(time.Hour)
	for _, r := range []struct{ name, condition, want string }{
		{"SC-44 who leaves, and what is waited for", progressing,
			"True Draining: 2 members on cordoned nodes will be retired when new members are available: db-a, db-b; not Ready: db-d (Unschedulable); to keep them: `kubectl uncordon n1 n2`"},
		{"SC-44 that there is no room", degraded,
			"True DrainBlocked: new members are unschedulable, and these members cannot leave their cordoned nodes without them: db-a, db-b; `kubectl -n ns describe pod db-d` shows what is missing; add capacity, or end the drain: `kubectl uncordon n1 n2`"},
	} {
		if got := says(told(seen(replacing(), leavingA(), leavingB(), c(), roomless)), r.condition); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
	at := func(w *world) string { return says(told(w), progressing) }
	if got, want := at(seen(replacing(), leavingA().of("old"), b().of("old"), c(), d(), revisionOfImage("old", "zero"))), "True Updating"; got[:len(want)] != want {
		t.Errorf("an update is told before a drain: %s", got)
	}
	if got, want := at(seen(replacing(), a(), b(), c())), "False Complete"; got[:len(want)] != want {
		t.Errorf("at rest it says %s", got)
	}
	soon := pod("d").unschedulableFor(time.Minute)
	if got := says(told(seen(replacing(), leavingA(), b(), c(), soon)), degraded); got != "False Healthy: no problems detected" {
		t.Errorf("before pendingSeconds have passed it says %s", got)
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
	if i := slices.IndexFunc(w.members, func(m *member) bool { return m.node.cordoned }); i >= 0 {
		t.Errorf("SC-43 %s is on a cordoned node", w.members[i].name())
	}
}

// SC-46 SC-47 The policy for the claims of leaving members.
func TestClaimsOfMembersThatLeave(t *testing.T) {
	policies := replacing().retention(v1alpha1.RetainClaims, v1alpha1.DeleteClaims, v1alpha1.RetainClaims)
	w := seen(policies, leavingA(), b(), c(), d(), budgeted(4))
	claim := firstWritten(w).(*corev1.PersistentVolumeClaim)
	if claim.Labels[v1alpha1.LabelRetained] != scaled || claim.Annotations[v1alpha1.AnnotationRetention] != string(v1alpha1.DeleteClaims) {
		t.Errorf("SC-46 the claim of one that leaves is set aside as %v, %v", claim.Labels, claim.Annotations)
	}
	w = seen(policies, a().nodeCordoned().nodeNotReadyFor(time.Hour), b(), c(), d())
	p := planOf(w)
	if got := p.Steps.Strings(); !slices.Equal(got, []string{deletesLost("a", v1alpha1.LossNodeNotReady)}) {
		t.Errorf("SC-46 of one that is lost it does %q", got)
	}
}

// A set that was stored before the field existed is not changed.
func TestStoredSetsAreLeftAlone(t *testing.T) {
	for name, w := range map[string]*world{
		"Replace": seen(set("db"), leavingA(), b(), c()), "Keep": seen(set("db").keepsEvicted(), leavingA(), b(), c()),
		"none": seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.Replacement.OnEviction = "" }), leavingA(), b(), c()),
	} {
		if p := planOf(w); len(p.Steps) > 0 || p.wantsLive() {
			t.Errorf("%s: it does %q", name, p.Steps.Strings())
		}
		if w.budget.Spec.MaxUnavailable.IntValue() != 1 || w.budget.Spec.MinAvailable != nil {
			t.Errorf("%s: the budget is %v", name, w.budget.Spec)
		}
	}
}
