package replicatedstatefulset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
)

// Scenarios of sets in which no member is primary, or a member is behind. The invariant of the fake
// database fails a test if an acknowledged entry is lost or two primaries act.

// link breaks the replication to a secondary. The API does not show it.
func link(name string) func(*stage) {
	return func(s *stage) { s.Say("# %s is cut off from its primary", name); s.db.Containers[name].Behind = true }
}

// slow makes a secondary get no entries for now. Neither the API nor status shows it.
func slow(name string) func(*stage) {
	return func(s *stage) { s.Say("# the replication of %s is slow", name); s.db.Containers[name].Slow = true }
}

// tellCrashes makes the kubelets report ended containers, and nothing else.
func tellCrashes(s *stage) {
	for _, p := range s.Pods() {
		if s.db.Container(p) == nil && simulate.ShowsRunning(p) && s.Up(p.Spec.NodeName) {
			s.KubeletMove(p)()
		}
	}
}

// nowhere makes the pods of that node unschedulable.
func nowhere(node string) func(*stage) {
	return func(s *stage) { s.moved[node] = "n9" }
}

func play(t *testing.T, set *v1alpha1.ReplicatedStatefulSet, wait time.Duration, steps ...func(*stage)) *stage {
	s := newStage(t, set)
	s.settle(wait)
	for _, step := range steps {
		s.Say("")
		step(s)
		s.settle(wait)
	}
	if set := s.Set(); set != nil {
		s.tell()
	}
	return s
}

func TestMembersThatGoDoNotStandForThoseThatStay(t *testing.T) {
	play(t, fixture.SetOf(5, 1), 30*time.Second, write, partition("n3"), write, together(partition("n4"), partition("n5")), write,
		together(powerOff("n1"), powerOff("n2"), outOfService("n1"), outOfService("n2"), nowhere("n1"), nowhere("n2"),
			answers("n3"), answers("n4"), answers("n5"), crash(2), crash(3), crash(4)), scaleTo(3))
}

func TestAScaleDownInTheDarkKeepsTheNewestCopy(t *testing.T) {
	play(t, fixture.SetOf(3, 1), 40*time.Second, write, switchTo(2), partition("n1"), write, together(answers("n1"), crash(0), crash(1), crash(2), tellCrashes, scaleTo(1)))
}

func TestAScaleToNoneAndBackKeepsTheNewestCopy(t *testing.T) {
	play(t, fixture.SetOf(3, 1), 40*time.Second, write, switchTo(2), partition("n1"), write, together(answers("n1"), crash(0), crash(1), crash(2), tellCrashes, scaleTo(0), func(s *stage) {
		for range 100 {
			s.Look()
			s.pass()
			if *s.StatefulSet().Spec.Replicas == 0 {
				break
			}
			s.Now = s.Now.Add(time.Second)
		}
	}, scaleTo(1)))
}

func TestAQuorumBesideThePodOfAFormerObject(t *testing.T) {
	set := fixture.SetOf(3, 1)
	set.Spec.Seeding = v1alpha1.SeedingQuorum
	s := play(t, set.DeepCopy(), 40*time.Second, write, partition("n1"), deleteSet, quarter, quarter)
	if s.Set() != nil {
		t.Fatal("the object is not deleted")
	}
	s.Say("# the object is recreated")
	s.Put(set.DeepCopy())
	s.settle(40 * time.Second)
}

func TestASecondaryThatFellBehindIsNotPromoted(t *testing.T) {
	play(t, fixture.SetOf(3, 1), 20*time.Second, write, together(link("rss-db-1"), write, crash(0), crash(2)))
}

// TestASlowSecondaryIsNotPromotedAlone tests that a secondary that is behind is not promoted when
// the only one with all data ends together with the primary.
func TestASlowSecondaryIsNotPromotedAlone(t *testing.T) {
	for _, others := range [][]func(*stage){
		{crash(0), crash(2)},
		{crash(2), crash(0)},
		{crash(0), crash(2), tellCrashes},
		{crash(0), deleted(2)},
		{deleted(0), crash(2)},
		{deleted(0), deleted(2)},
		{deleted(2), crash(0), tellCrashes},
	} {
		play(t, fixture.SetOf(3, 1), 90*time.Second, write, together(append([]func(*stage){slow("rss-db-1"), write}, others...)...), write)
	}
}

func TestASecondaryThatFellBehindIsNotPromotedInAnUpdate(t *testing.T) {
	stopped := until(func(s *stage) bool { return s.db.Containers["rss-db-2"].Role == record.Idle }) // for the update
	play(t, fixture.SetOf(3, 1), 20*time.Second, write, together(link("rss-db-1"), write, image("two"), stopped, crash(0)))
}

// TestASetOfOneWithoutClaimsIsNeverTwo tests a set of one on a shared volume (no claim templates)
// whose pod is force-deleted on a lost node.
func TestASetOfOneWithoutClaimsIsNeverTwo(t *testing.T) {
	set := fixture.SetOf(1, 1)
	set.Spec.Pod.VolumeClaimTemplates = nil
	play(t, set, 30*time.Second, write, together(partition("n1"), func(s *stage) { s.moved["n1"] = "n5" }, forced(0)))
}

// dark are scenarios that TestRandomOrders runs too.
var dark = []scenario{
	{name: "scale 5 to 3 without a primary", set: fixture.SetOf(5, 1), steps: []func(*stage){write, partition("n3"), write, together(crash(0), crash(1), answers("n3")), scaleTo(3), write}, wait: 30 * time.Second},
	{name: "scale 3 to 1 without a primary", set: fixture.SetOf(3, 1), steps: []func(*stage){write, switchTo(2), write, together(crash(0), crash(1), crash(2)), scaleTo(1), write, scaleTo(3)}, wait: 30 * time.Second},
	{name: "scale 5 to 2 to 4 without a primary", set: fixture.SetOf(5, 1), steps: []func(*stage){write, switchTo(4), write, partition("n1"), write, scaleTo(2), write, scaleTo(4)}, wait: 30 * time.Second},
	{name: "members leave without a primary", set: fixture.LeavingSet(5, 1), steps: []func(*stage){write, switchTo(4), write, together(crash(0), crash(1), crash(4)), scaleTo(3), write, scaleTo(4), scaleTo(2), write, scaleTo(4)}, wait: 90 * time.Second},
	{name: "primaries leave, and return", set: fixture.AllPrimary(fixture.LeavingSet(4, 4, "secondary", "seed")), steps: []func(*stage){write, scaleTo(2), write, crash(0), image("two"), scaleTo(4), write, together(scaleTo(3), untilOne(v1alpha1.MembershipLeft), scaleTo(4)), write, together(scaleTo(2), untilOne(v1alpha1.MembershipLeaving), scaleTo(4)), write}, wait: 90 * time.Second},
	{name: "scale 3 to 0 to 3", set: fixture.SetOf(3, 1), steps: []func(*stage){write, scaleTo(0), write, scaleTo(3), write, image("two")}, wait: 30 * time.Second},
	{name: "two primaries of four", set: fixture.SetOf(4, 2), steps: []func(*stage){write, primariesTo(1), image("two"), write, scaleTo(2)}, wait: 30 * time.Second},
	{name: "replication links are cut", set: fixture.SetOf(3, 1), steps: []func(*stage){write, anyLink, write, image("two"), write, anyLink, write, switchTo(2), write, scaleTo(2), write}, wait: 30 * time.Second},
	{name: "replication is slow", set: fixture.SetOf(3, 1), steps: []func(*stage){write, anySlow, write, together(crash(0), crash(2)), write, anySlow, write, image("two"), write}, wait: 30 * time.Second},
	{name: "replication is slow, scale 3 to 2", set: fixture.SetOf(3, 1), steps: []func(*stage){write, anySlow, write, scaleTo(2), crash(0), write, scaleTo(3), write, anySlow, write, together(crash(0), crash(2))}, wait: 90 * time.Second},
	{name: "two primaries and a slow secondary", set: fixture.SetOf(3, 2), steps: []func(*stage){write, anySlow, write, together(crash(0), crash(1)), write, primariesTo(1), write, anySlow, write, crash(2)}, wait: 90 * time.Second},
	{name: "all members are primary", set: fixture.SetOf(3, 3, "secondary", "seed"), steps: []func(*stage){write, scaleTo(2), write, crash(0), image("two"), scaleTo(4), write}, wait: 30 * time.Second},
	{name: "no secondaries", set: fixture.SetOf(3, 1, "secondary"), steps: []func(*stage){write, image("two"), write, scaleTo(1), write}, wait: 30 * time.Second},
}

func anyLink(s *stage) { s.anySecondary(link) }

func anySlow(s *stage) { s.anySecondary(slow) }

func (s *stage) anySecondary(suffers func(name string) func(*stage)) {
	for _, name := range sortedKeys(s.db.Containers) {
		if s.db.Containers[name].Role == record.Secondary {
			suffers(name)(s)
			return
		}
	}
}

// TestAPrimaryThatAnotherOwnerAdopted tests that a pod that may be primary still counts after
// another object adopted it, so that no other primary starts.
func TestAPrimaryThatAnotherOwnerAdopted(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(20 * time.Second)
	adopted := func(s *stage) {
		s.Say("# a ReplicaSet adopts rss-db-0")
		s.Edit(s.pod(0), func(p *corev1.Pod) {
			p.Labels = map[string]string{"tier": "data"}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}}
		})
	}
	together(write, adopted, (*stage).restart)(s)
	s.settle(time.Minute)
	if all := s.db.Acting(); len(all) != 1 || all[0].Pod != "rss-db-0" {
		s.Fatal(t, "another member is primary")
	}
	s.Delete(s.pod(0))
	s.settle(time.Minute)
	if all := s.db.Acting(); len(all) != 1 || s.pod(0) == nil || s.pod(0).OwnerReferences[0].Kind != "StatefulSet" {
		s.Fatal(t, "the deleted primary was not replaced")
	}
}
