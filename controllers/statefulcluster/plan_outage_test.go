package statefulcluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/kubelet"
)

// deletedByUser records that this process saw a user delete the pod.
func deletedByUser(id string) thing {
	return with(func(w *world) { w.deleted[w.nameOf(id)] = true })
}

// endsUnseen makes the cache still show a pod that is gone.
func endsUnseen(id string) thing {
	return with(func(w *world) { w.ending = append(w.ending, w.nameOf(id)) })
}

func lostBefore(id string) thing {
	return with(func(w *world) {
		w.set.Status.Lost = append(w.set.Status.Lost, v1alpha1.LostMember{Name: w.nameOf(id)})
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
		{name: "W1 a member that vanished unseen comes back on its claims with Keep",
			world: seen(keep(), b(), c(), looseClaimOf("a")), want: []string{keptOnRecord}},
		{name: "W1 with the template that an update would give it",
			world: seen(keep(), b(), c(), looseClaimOf("a"), updating("a", "", "now")), want: brings("a")},
		{name: "W1 one that a user was seen to delete does not",
			world: seen(keep(), b(), c(), looseClaimOf("a"), deletedByUser("a")), want: creates("f1")},
		{name: "W1 nor one that is on record as lost",
			world: seen(keep(), b(), c(), looseClaimOf("a"), lostBefore("a")), want: creates("f1")},
		{name: "W1 nor one that has a successor",
			world: seen(keep(), b().inPlaceOf("a", 1), c(), pod("d").on("n1").ready(), looseClaimOf("a")),
			want:  []string{"patch persistentvolumeclaim db-data-a: Retention, labeled enge.me/retained=Lost"}},
		{name: "W1 nor one whose claims are not all there",
			world: seen(keep().withClaims("data", "logs"), b(), c(), with(func(w *world) {
				looseClaimOf("a").into(w)
				w.loose = w.loose[:1]
			})),
			want: []string{"create pod db-f1: Missing > create persistentvolumeclaim db-data-f1: Claim > create persistentvolumeclaim db-logs-f1: Claim"}},
		{name: "W1 nothing is done while the cache does not say how a pod ended",
			world: seen(keep(), b(), c(), looseClaimOf("a"), endsUnseen("a")), wait: statusInterval},
		{name: "W1 a set that replaces evicted members replaces it",
			world: seen(set("db"), b(), c(), looseClaimOf("a")), want: creates("f1")},
		{name: "W1 a claim that was set aside stays there",
			world: seen(keep(), b(), c(), looseClaimOf("a").retained("Lost")), want: creates("f1")},
		{name: "W2 a member that a shutdown ended comes back with Keep",
			world: seen(keep(), a().endedByNode("Terminated"), b(), c()), want: restarts("a")},
		{name: "W2 one that its kubelet evicted too",
			world: seen(keep(), a().endedByNode("Evicted"), b(), c()), want: restarts("a")},
		{name: "W2 also without the reason, if all its containers are always restarted",
			world: seen(keep(), a().endedByNode("").restartPolicy(corev1.RestartPolicyAlways), b(), c()), want: restarts("a")},
		{name: "W2 not if its own deadline is over",
			world: seen(keep(), a().endedByNode("DeadlineExceeded").restartPolicy(corev1.RestartPolicyAlways), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "W2 on a Node that is not Ready too",
			world: seen(keep(), a().endedByNode("Terminated").nodeNotReadyFor(time.Minute), b(), c()), want: restarts("a")},
		{name: "W2 one that was preempted too",
			world: seen(keep(), a().disrupted("PreemptionByScheduler"), b(), c()), want: []string{keptOnRecord}},
		{name: "W2 one whose program ended does not",
			world: seen(keep(), a().failed(), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "W2 nor one of a set that replaces evicted members",
			world: seen(set("db"), a().endedByNode("Evicted"), b(), c()), want: []string{replaces("a", "f1", v1alpha1.LossFailed)}},
	})
}

func TestMembersThatComeBackAreNotOnRecordAsLost(t *testing.T) {
	keep := func() *setFixture { return set("db").keepsEvicted() }
	for _, row := range []struct {
		name  string
		world *world
		want  string
	}{
		{"W1 one that comes back", seen(keep(), b(), c(), looseClaimOf("a")), ""},
		{"W1 one of which the cache does not say how it ended", seen(keep(), b(), c(), looseClaimOf("a"), endsUnseen("a")), ""},
		{"W1 one that a user was seen to delete", seen(keep(), b(), c(), looseClaimOf("a"), deletedByUser("a")), "db-a"},
		{"W1 one that there is no slot for", seen(keep().replicas(2), b(), c(), looseClaimOf("a")), "db-a"},
		{"W1 one of a set that replaces evicted members", seen(set("db"), b(), c(), looseClaimOf("a")), "db-a"},
	} {
		p := planOf(row.world)
		var lost []string
		for _, l := range statusOf(row.world, &p, nil).Lost {
			lost = append(lost, l.Name)
		}
		if got := strings.Join(lost, ","); got != row.want {
			t.Errorf("%s: on record as lost: %q, want %q", row.name, got, row.want)
		}
		if told := strings.Join(vanishedNow(derive(row.world)), ","); told != row.want {
			t.Errorf("%s: events name %q, want %q", row.name, told, row.want)
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
		{name: "W2 no member is replaced while none is Ready", world: seen(set("db"), da(), db(), dc())},
		{name: "W2 nor for Nodes that are gone",
			world: seen(set("db"), a().nodeMissingFor(time.Hour), b().nodeMissingFor(time.Hour), c().nodeMissingFor(time.Hour))},
		{name: "W2 nor the only one", world: seen(set("db").replicas(1), da())},
		{name: "W2 nor the only one for being not Ready", world: seen(set("db").replicas(1), pod("a").on("n1").unreadyFor(time.Hour))},
		{name: "W2 unless a person allows it",
			world: seen(set("db").replicas(1).replacesInOutage(), da()), want: []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "W2 a Node out of service was given up by a person",
			world: seen(set("db").replicas(1), a().nodeOutOfService()), want: []string{replaces("a", "f1", v1alpha1.LossNodeOutOfService)}},
		{name: "W2 a set without claims has no data to keep",
			world: seen(set("db").replicas(1).withClaims(), da()), want: []string{"delete pod db-a: NodeNotReady, the member is lost and will not come back, it has no claims > " +
				"create pod db-f1: Replacement, in place of db-a"}},
		{name: "W2 members whose pods ended come back on their claims",
			world: seen(set("db"), da().failed(), db().failed(), dc()), want: restarts("a", "b")},
		{name: "W2 and those that vanished",
			world: seen(set("db"), da(), db(), looseClaimOf("c")), want: []string{keptOnRecord}},
		{name: "W2 and those that the control plane took from their Nodes",
			world: seen(set("db"), da().disrupted("DeletionByTaintManager"), db(), dc()), want: []string{keptOnRecord}},
		{name: "W2 also shortly after an outage, if they were there before",
			world: seen(set("db").replicas(2), back(2*time.Minute), looseClaimOf("a").but(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = ago(time.Hour) })),
			want:  []string{keptOnRecord}},
		{name: "W2 but not in a set that has just been made",
			world: seen(set("db").replicas(2), back(2*time.Minute), looseClaimOf("a").but(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = ago(3 * time.Minute) })),
			want:  creates("f1")},
		{name: "W2 but not those that a user evicted or deleted",
			world: seen(set("db"), da().evicted(), db().going(), dc()),
			want:  []string{createsInPlaceOf("a", "f1"), createsInPlaceOf("b", "f2")}},
		{name: "W2 members that went down before the first came back have some minutes more",
			world: seen(set("db"), da(), b().unreadyFor(10*time.Minute).nodeNotReadyFor(10*time.Minute), back(2*time.Minute)), wait: 3 * time.Minute},
		{name: "W2 and no longer",
			world: seen(set("db"), da(), b(), back(5*time.Minute)), want: []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "W2 one that went down after that is replaced",
			world: seen(set("db").replicas(2), pod("a").on("n1").unreadyFor(time.Minute).nodeNotReadyFor(time.Minute), back(2*time.Minute)),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "W2 a member that comes back is waited for, though its Node is lost",
			world: seen(set("db"), da().going(), db(), dc(), updating("a", "uid-of-a", "now"))},
	})
	w := seen(set("db"), da(), db(), dc())
	p := planOf(w)
	if got := says(statusOf(w, &p, nil), v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True NoMemberReady") || !strings.Contains(got, "db-a, db-b, db-c") {
		t.Errorf("W2 Degraded says %s", got)
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
var offered = with(func(w *world) {
	w.set.Status.Creating = nil
	w.offers = w.offersOf(w.loose)
	w.fresh = append(firstIDs(w), w.fresh...)
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
		{name: "SC-51 a claim of the set that was given back gets its member in an empty slot",
			world: offered.to(seen(set("db"), a(), b(), x())), want: back},
		{name: "SC-51 also one that is on record as lost",
			world: offered.to(seen(set("db"), a(), b(), x(), lostBefore(xs))), want: back},
		{name: "SC-51 not one that was not given back",
			world: offered.to(seen(set("db"), a(), b(), looseClaimOf(xs).retained("Lost"))), want: fresh},
		{name: "SC-51 not one that was not set aside",
			world: offered.to(seen(set("db"), a(), b(), looseClaimOf(xs).givenBack(), deletedByUser(xs))), want: fresh},
		{name: "SC-51 not one whose old pod is still there",
			world: offered.to(seen(set("db"), a(), b(), pod(xs).on("n3").ready().going().withoutClaims(), x())),
			want:  []string{names, createsInPlaceOf(xs, "f1")}},
		{name: "SC-51 not without the other claims of its member",
			world: with(func(w *world) { w.loose = w.loose[:1] }).to(seen(set("db").withClaims("data", "logs"), a(), b(), c(), x()))},
		{name: "SC-51 none takes the place of a member that is there", world: seen(set("db"), a(), b(), c(), x())},
		{name: "SC-51 none is deleted while it waits",
			world: seen(remove(), a(), b(), c(), x().but(func(c *corev1.PersistentVolumeClaim) {
				c.Annotations[v1alpha1.AnnotationRetention] = string(v1alpha1.DeleteClaims)
			}).onRecord())},
	})
	aside := seen(set("db"), a(), b(), c(), looseClaimOf(xs).retained("Lost"))
	p := planOf(aside)
	const want = "annotate pvc -l enge.me/cluster=db,enge.me/member=" + xs + " enge.me/adopt=db"
	if got := says(statusOf(aside, &p, nil), v1alpha1.ConditionDegraded); !strings.Contains(got, "db-data-"+xs) || !strings.Contains(got, want) {
		t.Errorf("W2 Degraded says %s", got)
	}
	is := seen(set("db"), a(), b(), pod(xs).aged(time.Minute).on("n3").ready().annotated(v1alpha1.AnnotationUpdated, restored), lostBefore(xs))
	p = planOf(is)
	if lost := statusOf(is, &p, nil).Lost; len(lost) > 0 {
		t.Errorf("SC-51 a member that is back is on record as lost: %v", lost)
	}
}

func TestNodesThatAreMissing(t *testing.T) {
	check(t, []row{
		{name: "W2 a Node object that has been missing for less than 40 seconds takes no member with it",
			world: seen(set("db"), a().nodeMissingFor(40*time.Second-1), b(), c()), wait: 1},
		{name: "W2 one that has been missing for 40 seconds does",
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
		{name: "W2 not at once", world: seen(set(), a(), b(), c(), lost(secondLook-1)), wait: 1},
		{name: "W2 at a second look", world: seen(set(), a(), b(), c(), lost(secondLook)), want: gone},
		{name: "W2 not while no member is Ready",
			world: seen(set(), pod("a").on("n1").unreadyFor(time.Minute), pod("b").on("n2").unreadyFor(time.Minute), pod("c").on("n3").unreadyFor(time.Minute), lost(time.Hour)),
			wait:  4 * time.Minute},
		{name: "W2 nor of a scale-down while no member is Ready", world: seen(scaled(1), pod("a").on("n1").unreadyFor(time.Minute), retired()), wait: 4 * time.Minute},
		{name: "W2 but where none is wanted", world: seen(scaled(0), retired()), want: []string{"delete persistentvolumeclaim db-data-x: Scaled, as set by persistentVolumeClaimRetentionPolicy"}},
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
		t.Errorf("something was deleted in the outage:\n%s", story)
	}
	turn(true)
	s.settle(15 * time.Minute)
	s.ends()
	s.Check(t)
}
