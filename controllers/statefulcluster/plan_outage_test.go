package statefulcluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// deletedByUser records that this process saw a user delete the pod.
func deletedByUser(id string) thing {
	return with(func(w *facts.World) { w.Deleted[w.NameOf(id)] = true })
}

// endsUnseen makes the cache still show a pod that is gone.
func endsUnseen(id string) thing {
	return with(func(w *facts.World) { w.Ending = append(w.Ending, w.NameOf(id)) })
}

func lostBefore(id string) thing {
	return with(func(w *facts.World) {
		w.Set.Status.Lost = append(w.Set.Status.Lost, v1alpha1.LostMember{Name: w.NameOf(id)})
	})
}

func (s *setFixture) replacesInOutage() *setFixture {
	s.Spec.Replacement.WhenNoneReady = v1alpha1.NoneReadyReplaces
	return s
}

// withClaims sets the claim templates.
func (s *setFixture) withClaims(templates ...string) *setFixture {
	s.Spec.VolumeClaimTemplates = nil
	for _, t := range templates {
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, volumeClaimTemplate(t, "1Gi"))
	}
	return s
}

const keptOnRecord = "patch status of statefulcluster db: Update"

func TestMembersThatVanishUnseen(t *testing.T) {
	keep := func() *setFixture { return set("db").keepsEvicted() }
	check(t, []row{
		{name: "W1 a member whose pod disappeared unobserved is recorded for its return with Keep",
			world: seen(keep(), b(), c(), looseClaimOf("a")), want: []string{keptOnRecord}},
		{name: "W1 a member whose pod disappeared unobserved is recreated with the current template",
			world: seen(keep(), b(), c(), looseClaimOf("a"), updating("a", "", "now")), want: brings("a")},
		{name: "W1 a member whose deletion by a user was observed is replaced",
			world: seen(keep(), b(), c(), looseClaimOf("a"), deletedByUser("a")), want: creates("f1")},
		{name: "W1 a member in status.lost is replaced",
			world: seen(keep(), b(), c(), looseClaimOf("a"), lostBefore("a")), want: creates("f1")},
		{name: "W1 a member with a successor is not recreated and its claim is labeled",
			world: seen(keep(), b().inPlaceOf("a", 1), c(), pod("d").on("n1").ready(), looseClaimOf("a")),
			want:  []string{"patch persistentvolumeclaim db-data-a: Retention, labeled enge.me/retained=Lost"}},
		{name: "W1 a member without all of its claims is replaced",
			world: seen(keep().withClaims("data", "logs"), b(), c(), with(func(w *facts.World) {
				looseClaimOf("a").into(w)
				w.Loose = w.Loose[:1]
			})),
			want: []string{"create pod db-f1: Missing > create persistentvolumeclaim db-data-f1: Claim > create persistentvolumeclaim db-logs-f1: Claim"}},
		{name: "W1 no action is taken while the cache does not show how a pod ended",
			world: seen(keep(), b(), c(), looseClaimOf("a"), endsUnseen("a")), wait: spec.StatusInterval},
		{name: "W1 a member whose pod disappeared unobserved is replaced with onEviction Replace",
			world: seen(set("db"), b(), c(), looseClaimOf("a")), want: creates("f1")},
		{name: "W1 a claim that was set aside is not used for a new member",
			world: seen(keep(), b(), c(), looseClaimOf("a").retained("Lost")), want: creates("f1")},
		{name: "W2 a member whose node was shut down is recreated with Keep",
			world: seen(keep(), a().endedByNode("Terminated"), b(), c()), want: restarts("a")},
		{name: "W2 a member that its kubelet evicted is recreated with Keep",
			world: seen(keep(), a().endedByNode("Evicted"), b(), c()), want: restarts("a")},
		{name: "W2 a failed pod without a reason is recreated with Keep if restartPolicy is Always",
			world: seen(keep(), a().endedByNode("").restartPolicy(corev1.RestartPolicyAlways), b(), c()), want: restarts("a")},
		{name: "W2 a pod that exceeded activeDeadlineSeconds is replaced with Keep",
			world: seen(keep(), a().endedByNode("DeadlineExceeded").restartPolicy(corev1.RestartPolicyAlways), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "W2 a member whose node was shut down and is not Ready is recreated with Keep",
			world: seen(keep(), a().endedByNode("Terminated").nodeNotReadyFor(time.Minute), b(), c()), want: restarts("a")},
		{name: "W2 a preempted member is recorded for its return with Keep",
			world: seen(keep(), a().disrupted("PreemptionByScheduler"), b(), c()), want: []string{keptOnRecord}},
		{name: "W2 a member whose program ended is replaced with Keep",
			world: seen(keep(), a().failed(), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "W2 a member that its kubelet evicted is replaced with onEviction Replace",
			world: seen(set("db"), a().endedByNode("Evicted"), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossFailed)}},
	})
}

func TestMembersThatComeBackAreNotOnRecordAsLost(t *testing.T) {
	keep := func() *setFixture { return set("db").keepsEvicted() }
	for _, row := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"W1 a member that is recreated is not recorded as lost", seen(keep(), b(), c(), looseClaimOf("a")), ""},
		{"W1 a member is not recorded as lost while the cache does not show how its pod ended", seen(keep(), b(), c(), looseClaimOf("a"), endsUnseen("a")), ""},
		{"W1 a member whose deletion by a user was observed is recorded as lost", seen(keep(), b(), c(), looseClaimOf("a"), deletedByUser("a")), "db-a"},
		{"W1 a member without a slot is recorded as lost", seen(keep().replicas(2), b(), c(), looseClaimOf("a")), "db-a"},
		{"W1 a member of a set with onEviction Replace is recorded as lost", seen(set("db"), b(), c(), looseClaimOf("a")), "db-a"},
	} {
		p := planOf(row.world)
		var lost []string
		for _, l := range statusOf(row.world, &p, nil).Lost {
			lost = append(lost, l.Name)
		}
		if got := strings.Join(lost, ","); got != row.want {
			t.Errorf("%s: status.lost has %q, want %q", row.name, got, row.want)
		}
		if told := strings.Join(status.VanishedNow(facts.Derive(row.world)), ","); told != row.want {
			t.Errorf("%s: events report %q, want %q", row.name, told, row.want)
		}
	}
}

func TestOutage(t *testing.T) {
	down := func(p *podFixture) *podFixture {
		return p.unreadyFor(20 * time.Minute).nodeNotReadyFor(20 * time.Minute)
	}
	da := func() *podFixture { return down(pod("a").on("n1")) }
	db := func() *podFixture { return down(pod("b").on("n2")) }
	dc := func() *podFixture { return down(pod("c").on("n3")) }
	back := func(d time.Duration) *podFixture { return pod("c").on("n3").readyFor(d) }
	check(t, []row{
		{name: "W2 no member is replaced while no member is Ready", world: seen(set("db"), da(), db(), dc())},
		{name: "W2 no member is replaced while all Nodes are missing",
			world: seen(set("db"), a().nodeMissingFor(time.Hour), b().nodeMissingFor(time.Hour), c().nodeMissingFor(time.Hour))},
		{name: "W2 the only member is not replaced when its Node is lost", world: seen(set("db").replicas(1), da())},
		{name: "W2 the only member is not replaced when it is unready", world: seen(set("db").replicas(1), pod("a").on("n1").unreadyFor(time.Hour))},
		{name: "W2 the only member is replaced with whenNoneReady Replace",
			world: seen(set("db").replicas(1).replacesInOutage(), da()), want: []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "W2 the only member is replaced when an administrator taints its Node out of service",
			world: seen(set("db").replicas(1), a().nodeOutOfService()), want: []string{replaces("a", "f1", v1alpha1.LossNodeOutOfService)}},
		{name: "W2 the only member of a set without claims is replaced",
			world: seen(set("db").replicas(1).withClaims(), da()), want: []string{"delete pod db-a: NodeNotReady, the member is lost and will not come back, it has no claims > " +
				"create pod db-f1: Replacement, in place of db-a"}},
		{name: "W2 members whose pods failed in an outage are recreated on their claims",
			world: seen(set("db"), da().failed(), db().failed(), dc()), want: restarts("a", "b")},
		{name: "W2 a member whose pod disappeared in an outage is recorded for its return",
			world: seen(set("db"), da(), db(), looseClaimOf("c")), want: []string{keptOnRecord}},
		{name: "W2 a member that the control plane evicted in an outage is recorded for its return",
			world: seen(set("db"), da().disrupted("DeletionByTaintManager"), db(), dc()), want: []string{keptOnRecord}},
		{name: "W2 a member whose pod disappeared is recorded for its return shortly after an outage",
			world: seen(set("db").replicas(2), back(2*time.Minute), looseClaimOf("a").but(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = ago(time.Hour) })),
			want:  []string{keptOnRecord}},
		{name: "W2 a member whose pod disappeared is replaced in a new set",
			world: seen(set("db").replicas(2), back(2*time.Minute), looseClaimOf("a").but(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = ago(3 * time.Minute) })),
			want:  creates("f1")},
		{name: "W2 members that a user evicted or deleted in an outage are replaced",
			world: seen(set("db"), da().evicted(), db().going(), dc()),
			want:  []string{createsInPlaceOf("a", "f1"), createsInPlaceOf("b", "f2")}},
		{name: "W2 members lost in an outage are kept for outageGrace after the first member became Ready",
			world: seen(set("db"), da(), b().unreadyFor(10*time.Minute).nodeNotReadyFor(10*time.Minute), back(2*time.Minute)), wait: 3 * time.Minute},
		{name: "W2 members lost in an outage are replaced after outageGrace",
			world: seen(set("db"), da(), b(), back(5*time.Minute)), want: []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "W2 a member lost after the outage is replaced",
			world: seen(set("db").replicas(2), pod("a").on("n1").unreadyFor(time.Minute).nodeNotReadyFor(time.Minute), back(2*time.Minute)),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "W2 a returning member on a lost Node is not replaced in an outage",
			world: seen(set("db"), da().going(), db(), dc(), updating("a", "uid-of-a", "now"))},
	})
	w := seen(set("db"), da(), db(), dc())
	p := planOf(w)
	if got := says(statusOf(w, &p, nil), v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True NoMemberReady") || !strings.Contains(got, "db-a, db-b, db-c") {
		t.Errorf("W2 condition Degraded is %s", got)
	}
}

// givenBack annotates the claim as given back to the set.
func (c *claimFixture) givenBack() *claimFixture {
	return c.but(func(c *corev1.PersistentVolumeClaim) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[v1alpha1.AnnotationAdopt] = "db"
	})
}

// offered searches for claims that were given to the set, with no names on record.
var offered = with(func(w *facts.World) {
	w.Set.Status.Creating = nil
	w.Offers = w.OffersOf(w.Loose)
	w.Fresh = append(facts.FirstIDs(w), w.Fresh...)
})

func TestClaimsThatAreGivenBack(t *testing.T) {
	x := func() *claimFixture { return looseClaimOf(xs).retained("Lost").givenBack() }
	const names = "patch status of statefulcluster db: Names"
	back := []string{names, "create pod db-" + xs + ": Missing > patch persistentvolumeclaim db-data-" + xs + ": Claim, adopted as its annotation requests"}
	fresh := []string{names, creates("f1")[0]}
	remove := func() *setFixture {
		return set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
			s.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
		})
	}
	check(t, []row{
		{name: "SC-51 a member is created in an empty slot on a claim that was given back",
			world: offered.to(seen(set("db"), a(), b(), x())), want: back},
		{name: "SC-51 a member in status.lost is created on a claim that was given back",
			world: offered.to(seen(set("db"), a(), b(), x(), lostBefore(xs))), want: back},
		{name: "SC-51 no member is created on a claim that was not given back",
			world: offered.to(seen(set("db"), a(), b(), looseClaimOf(xs).retained("Lost"))), want: fresh},
		{name: "SC-51 no member is created on a claim that was not set aside",
			world: offered.to(seen(set("db"), a(), b(), looseClaimOf(xs).givenBack(), deletedByUser(xs))), want: fresh},
		{name: "SC-51 no member is created on a claim that was given back while the old pod exists",
			world: offered.to(seen(set("db"), a(), b(), pod(xs).on("n3").ready().going().withoutClaims(), x())),
			want:  []string{names, createsInPlaceOf(xs, "f1")}},
		{name: "SC-51 no member is created until all of its claims are given back",
			world: with(func(w *facts.World) { w.Loose = w.Loose[:1] }).to(seen(set("db").withClaims("data", "logs"), a(), b(), c(), x()))},
		{name: "SC-51 no existing member is replaced for a claim that was given back", world: seen(set("db"), a(), b(), c(), x())},
		{name: "SC-51 a claim that was given back is not deleted while it waits",
			world: seen(remove(), a(), b(), c(), x().but(func(c *corev1.PersistentVolumeClaim) {
				c.Annotations[v1alpha1.AnnotationRetention] = string(v1alpha1.DeleteClaims)
			}).onRecord())},
	})
	aside := seen(set("db"), a(), b(), c(), looseClaimOf(xs).retained("Lost"))
	p := planOf(aside)
	const want = "annotate pvc -l enge.me/cluster=db,enge.me/member=" + xs + " enge.me/adopt=db"
	if got := says(statusOf(aside, &p, nil), v1alpha1.ConditionDegraded); !strings.Contains(got, "db-data-"+xs) || !strings.Contains(got, want) {
		t.Errorf("W2 condition Degraded is %s", got)
	}
	is := seen(set("db"), a(), b(), pod(xs).aged(time.Minute).on("n3").ready().annotated(v1alpha1.AnnotationUpdated, facts.Restored), lostBefore(xs))
	p = planOf(is)
	if lost := statusOf(is, &p, nil).Lost; len(lost) > 0 {
		t.Errorf("SC-51 status.lost has a member that returned: %v", lost)
	}
}

func TestNodesThatAreMissing(t *testing.T) {
	check(t, []row{
		{name: "W2 a member is kept while its Node has been missing for less than 40 seconds",
			world: seen(set("db"), a().nodeMissingFor(40*time.Second-1), b(), c()), wait: 1},
		{name: "W2 a member is replaced when its Node has been missing for 40 seconds",
			world: seen(set("db"), a().nodeMissingFor(40*time.Second), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
	})
}

func TestClaimsAreDeletedAtASecondLook(t *testing.T) {
	set := func() *setFixture {
		return set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
			s.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
		})
	}
	lost := func(d time.Duration) *claimFixture {
		return looseClaimOf("x").retained("Lost").setAsideUnder(v1alpha1.DeleteClaims).onRecord().seenFor(d)
	}
	gone := []string{"delete persistentvolumeclaim db-data-x: Lost, as set by persistentVolumeClaimRetentionPolicy"}
	scaled := func(replicas int32) *setFixture {
		return set().replicas(replicas).retention(v1alpha1.RetainClaims, v1alpha1.DeleteClaims, v1alpha1.RetainClaims)
	}
	retired := func() *claimFixture {
		return looseClaimOf("x").retained("Scaled").setAsideUnder(v1alpha1.DeleteClaims).onRecord()
	}
	check(t, []row{
		{name: "W2 a claim of a lost member is not deleted before secondLook", world: seen(set(), a(), b(), c(), lost(spec.SecondLook-1)), wait: 1},
		{name: "W2 a claim of a lost member is deleted after secondLook", world: seen(set(), a(), b(), c(), lost(spec.SecondLook)), want: gone},
		{name: "W2 a claim of a lost member is not deleted while no member is Ready",
			world: seen(set(), pod("a").on("n1").unreadyFor(time.Minute), pod("b").on("n2").unreadyFor(time.Minute), pod("c").on("n3").unreadyFor(time.Minute), lost(time.Hour)),
			wait:  4 * time.Minute},
		{name: "W2 a claim of a retired member is not deleted while no member is Ready", world: seen(scaled(1), pod("a").on("n1").unreadyFor(time.Minute), retired()), wait: 4 * time.Minute},
		{name: "W2 a claim of a retired member is deleted when replicas is 0", world: seen(scaled(0), retired()), want: []string{"delete persistentvolumeclaim db-data-x: Scaled, as set by persistentVolumeClaimRetentionPolicy"}},
	})
}

// W2: a power failure during a surge update.
func TestW2AnOutageInASurgeUpdate(t *testing.T) {
	s := newStage(t, set("db").surge(1))
	s.settle(15 * time.Minute)
	s.Now = s.Now.Add(time.Hour)
	command("serve").do(s)
	turn := func(on bool) {
		for _, node := range []string{"n1", "n2", "n3", "n4"} {
			kubelet.Turn(s.Cluster, node, on)
		}
		for range 30 {
			s.look()
			s.pass()
			s.Now = s.Now.Add(10 * time.Second)
		}
	}
	s.look()
	s.pass()
	turn(false)
	if story := strings.Join(s.Story, "\n"); strings.Contains(story, "delete ") {
		t.Errorf("objects were deleted in the outage:\n%s", story)
	}
	turn(true)
	s.settle(15 * time.Minute)
	s.ends()
	s.Check(t)
}
