package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

const (
	leaseGrantA = "patch status of statefulsingleton db: Holder, a, epoch 1 > patch lease db.singleton: Assign, a, epoch 1"
	leaseGrantB = "patch status of statefulsingleton db: Holder, b, epoch 2 > patch lease db.singleton: Assign, b, epoch 2"
	protectsA   = "patch pod a: Protect"
	marksA      = "patch pod a: CrashLoop, its program ends again and again, and pod b takes over"
	nextB       = "patch lease db.singleton: Next, b_uid-of-b"
	namesB      = marksA + " > " + nextB
	releaseA    = "patch pod a: Release"
)

// running is a leased pod that runs its program, protected and ready.
func running(name string) *fixture.MemberFixture {
	m := fixture.Leased(name).Protect()
	m.Pod.Status.Conditions = []corev1.PodCondition{{Type: v1.ReadinessGate, Status: corev1.ConditionTrue}}
	return m
}

func TestFencingByLease(t *testing.T) {
	const fresh, half, over = time.Second, 14 * time.Second, 15 * time.Second
	cutOff := nodestate.Facts{}
	by := fixture.LeasedBy
	held := func(members ...*fixture.MemberFixture) *facts.World {
		return fixture.WorldOf(fixture.HeldByLease(), members...)
	}
	young := func(members ...*fixture.MemberFixture) *facts.World {
		return fixture.WorldOf(fixture.Singleton("db").Leased(), members...)
	}
	fixture.Check(t, []fixture.Row{
		{"the Lease and the rights on it are created, and nothing starts before", young(fixture.Leased("a")),
			[]string{"create lease db.singleton: Lease", "create role db.singleton: Lease", "create rolebinding db.singleton: Lease"}},
		{"the first pod starts by the Lease, without an annotation", by(young(fixture.Leased("a")), "", 0, 0, ""), []string{leaseGrantA}},
		{"the holder is protected and Ready", by(held(fixture.Leased("a")), "a", 1, fresh, ""), []string{protectsA, "set a condition of pod a: Ready, True"}},
		{"no pod starts while the holder renews the Lease", by(held(running("a"), fixture.Leased("b")), "a", 1, half, ""), nil},
		{"S50 the next pod starts when the Lease has expired", by(held(running("a"), fixture.Leased("b")), "a", 1, over, ""), []string{releaseA, leaseGrantB}},
		{"S50 a pod whose Lease has expired is deleted if no other waits", by(held(running("a")), "a", 1, over, ""), []string{"patch lease db.singleton: Lease, a does not run > " + releaseA, "delete pod a: Expired, it has not renewed the Lease for 15s"}},
		{"S14 the holder keeps its turn in a crash loop", by(held(running("a").Crashing(), fixture.Leased("b")), "a", 1, time.Hour, ""), nil},
		{"S50 the holder loses its turn in a crash loop on a Node that is not Ready", by(held(running("a").Crashing().OnNode(cutOff), fixture.Leased("b")), "a", 1, over, ""), []string{releaseA, leaseGrantB}},
		{"the next pod starts when the kubelet reports the end of the holder", by(held(running("a").Deleted().Ended(), fixture.Leased("b")), "a", 1, fresh, ""), []string{releaseA, leaseGrantB}},
		{"a holder of the Lease that was force deleted blocks until the Lease expires", by(held(fixture.Leased("b")), "a", 1, half, ""), nil},
		{"and no longer", by(held(fixture.Leased("b")), "a", 1, over, ""), []string{leaseGrantB}},
		{"a pod that was started by a handover becomes the holder", by(held(running("a").Deleted(), running("b")), "b", 2, fresh, ""), []string{releaseA, "patch status of statefulsingleton db: Adopt, b, epoch 2"}},
		{"an interrupted grant repeats the first write", by(held(fixture.Leased("a")), "", 0, over, ""),
			[]string{"patch status of statefulsingleton db: Holder, a, epoch 2 > patch lease db.singleton: Assign, a, epoch 2"}},
		{"a pending holder is not replaced by the holder of the Lease", by(fixture.WorldOf(fixture.HeldByLease().Held("a", 2), fixture.Waiting("a"), running("b")), "b", 1, fresh, ""), nil},
		{"a pending holder with an agent is replaced by the holder of the Lease", by(fixture.WorldOf(fixture.HeldByLease().Held("a", 2), fixture.Leased("a"), running("b")), "b", 1, fresh, ""), []string{"patch status of statefulsingleton db: Adopt, b, epoch 1"}},
		{"a recreated Lease starts no pod before it has not changed for its duration", by(held(fixture.Leased("a").Deleted(), fixture.Leased("b")), "", 0, half, ""), []string{"patch pod b: Protect"}},
		{"a pod without an agent starts after a write of the Lease", by(held(running("a").Deleted().Ended(), fixture.Waiting("b")), "a", 1, fresh, ""),
			[]string{releaseA, "patch status of statefulsingleton db: Holder, b, epoch 2 > patch lease db.singleton: Lease, b, epoch 2 > patch pod b: Grant, epoch 2"}},
		{"the successor of a terminating holder is named", by(held(running("a").Deleted(), fixture.Leased("b")), "a", 1, fresh, ""),
			[]string{"patch lease db.singleton: Next, b_uid-of-b"}},
		{"no successor is named while another pod may run", by(held(running("a").Deleted(), fixture.Ungated("u").Protect(), fixture.Leased("b")), "a", 1, fresh, ""), nil},
		{"a pod without an agent is no successor", by(held(running("a").Deleted(), fixture.Waiting("b")), "a", 1, fresh, ""), nil},
		{"a successor is removed when the holder need not stop", by(held(running("a"), fixture.Leased("b")), "a", 1, fresh, "b"), []string{"patch lease db.singleton: Next, none"}},
		{"the Lease is deleted when no pod uses it", fixture.WorldWith(by(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)), "", 1, fresh, ""), func(w *facts.World) {
			w.Object.Status.Holder.Lease = "db.singleton"
		}), []string{"patch status of statefulsingleton db: Lease, no pod uses it > delete lease db.singleton: Lease, no pod uses it > delete role db.singleton: Lease, no pod uses it > delete rolebinding db.singleton: Lease, no pod uses it"}},
		{"the Lease outlives its object with the pod", by(fixture.WorldOf(fixture.HeldByLease().Goes(), running("a")), "a", 1, fresh, ""), []string{
			"patch lease db.singleton: Lease, its pods still use it", "patch role db.singleton: Lease, its pods still use it", "patch rolebinding db.singleton: Lease, its pods still use it"}},
		{"a new object becomes the owner of the Lease", disowned(by(held(running("a")), "a", 1, fresh, "")), []string{
			"patch lease db.singleton: Lease", "patch role db.singleton: Lease", "patch rolebinding db.singleton: Lease"}},
		{"the Lease is kept while its holder is not among the pods", fixture.WorldWith(by(fixture.WorldOf(fixture.HeldByLease(), fixture.Waiting("b")), "x", 2, half, ""), func(w *facts.World) {
			w.Object.Spec.Fencing.Mode = v1.FencingProof
		}), nil},
		{"a Lease that another client has deleted blocks a pod without an agent", fixture.WorldWith(fixture.WorldOf(fixture.HeldByLease(), fixture.Waiting("b")), func(w *facts.World) {
			w.LeaseSince = fixture.Noon.Add(-time.Minute)
		}), []string{"create lease db.singleton: Lease"}},
		{"a holder that has stopped is removed from the Lease if no pod follows", by(held(running("a").Deleted().Ended()), "a", 1, fresh, ""),
			[]string{"patch lease db.singleton: Lease, a does not run > patch pod a: Release"}},
		{"a container that has just started has had no time for a renewal", by(held(running("a").StartedFor(14*time.Second), fixture.Leased("b")), "a", 1, over, ""), nil},
		{"a grant does not compete with the removal of the successor", by(held(running("a").Deleted(), fixture.Leased("b")), "a", 1, over, "b"), []string{releaseA, leaseGrantB}},
		{"without rights a deleted object stays until its pods end", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db").Leased().Goes(), fixture.Leased("a").Protect()), func(w *facts.World) {
			w.LeaseProblem.Message = "forbidden"
		}), nil},
		{"without rights no leased pod starts", fixture.WorldWith(young(fixture.Leased("a")), func(w *facts.World) {
			w.LeaseProblem.Message = "forbidden"
		}), []string{protectsA}},
	})
}

func TestS53CrashLoops(t *testing.T) {
	const fresh, over = time.Second, 15 * time.Second
	fixture.Check(t, []fixture.Row{
		{"a pod in a crash loop is marked, and hands over", fixture.LeasedBy(handingOver(running("a").Crashing(), fixture.Leased("b")), "a", 1, fresh, ""), []string{namesB}},
		{"it remains in a crash loop while its program runs", fixture.LeasedBy(handingOver(running("a").Restarted(2).Looped().StartedFor(9*time.Minute), fixture.Leased("b")), "a", 1, fresh, ""), []string{nextB}},
		{"until it has been running for long", fixture.LeasedBy(handingOver(running("a").Restarted(2).Looped().StartedFor(10*time.Minute), fixture.Leased("b")), "a", 1, fresh, "b"), []string{"patch lease db.singleton: Next, none"}},
		{"a program that was restarted at once is in none", fixture.LeasedBy(handingOver(running("a").Restarted(5).StartedFor(time.Second), fixture.Leased("b")), "a", 1, fresh, ""), nil},
		{"a pod whose agent has ended the program is in none", fixture.LeasedBy(handingOver(running("a").Crashing().LastExit(125), fixture.Leased("b")), "a", 1, fresh, ""), nil},
		{"a pod whose image cannot be pulled is in none", fixture.LeasedBy(handingOver(running("a").Stuck("ImagePullBackOff").With(begun), fixture.Leased("b")), "a", 1, over, ""), nil},
		{"it is marked once", fixture.LeasedBy(handingOver(running("a").Crashing().Looped(), fixture.Leased("b")), "a", 1, fresh, ""), []string{nextB}},
		{"it is marked also if the successor was named before", fixture.LeasedBy(handingOver(running("a").Crashing(), fixture.Leased("b")), "a", 1, fresh, "b"), []string{marksA}},
		{"it is marked before its Lease is taken over", fixture.LeasedBy(handingOver(running("a").Crashing(), fixture.Leased("b")), "a", 1, over, ""), []string{namesB}},
		{"the next pod starts when the Lease of a pod in a crash loop has expired", fixture.LeasedBy(handingOver(running("a").Crashing().Looped(), fixture.Leased("b")), "a", 1, over, "b"), []string{releaseA, leaseGrantB}},
		{"also if its image cannot be pulled any more", fixture.LeasedBy(handingOver(running("a").Stuck("ImagePullBackOff").Looped(), fixture.Leased("b")), "a", 1, over, "b"), []string{releaseA, leaseGrantB}},
		{"a pod that was in a crash loop does not take over from another one", fixture.LeasedBy(handingOver(running("a").Crashing(), fixture.Leased("b").Looped()), "a", 1, over, ""), nil},
		{"another one does, even if it is younger", fixture.LeasedBy(handingOver(running("a").Crashing().Looped(), fixture.Leased("c").Looped(), fixture.Leased("b").Age(-1)), "a", 1, over, "b"), []string{releaseA, leaseGrantB}},
		{"a pod in a crash loop that has handed over waits", fixture.LeasedBy(handingOver(fixture.Leased("a").Crashing().Looped(), running("b")), "b", 2, fresh, ""), []string{"patch status of statefulsingleton db: Adopt, b, epoch 2"}},
		{"a pod in a crash loop keeps its turn if no other pod waits, also when the Lease has expired", fixture.LeasedBy(handingOver(running("a").Crashing().Looped()), "a", 1, over, ""), nil},
		{"a pod in a crash loop keeps its turn while the object starts no pod", fixture.WorldWith(fixture.LeasedBy(handingOver(running("a").Crashing().Looped(), fixture.Leased("b")), "a", 1, over, ""), func(w *facts.World) { w.BeyondLimit = true }), nil},
		{"a pod of the newest revision that was in a crash loop does not replace the running one", fixture.LeasedBy(handingOver(running("a").Of("web").Old(), fixture.Leased("b").Of("web").Looped()), "a", 1, fresh, ""), nil},
		{"nor does another pod of that revision", fixture.LeasedBy(handingOver(running("a").Of("web").Old(), fixture.Leased("b").Of("web").Looped(), fixture.Leased("c").Of("web")), "a", 1, fresh, ""), nil},
		{"but one whose container was restarted for another reason does", fixture.LeasedBy(handingOver(running("a").Of("web").Old(), fixture.Leased("b").Of("web").Restarted(1), fixture.Leased("c").Of("web").Old()), "a", 1, fresh, ""),
			[]string{nextB, "delete pod a: Superseded, a pod of the newest revision waits for it"}},
		{"a pod that was in a crash loop does not replace one of an unknown owner", fixture.LeasedBy(unknowns(handingOver(running("a").Unknown("web", "one", 9), fixture.Leased("b").Unknown("web", "two", 3).Looped())), "a", 1, fresh, ""), nil},
	})
}

// handingOver returns a world whose object hands crash loops over, and whose holder is a.
func handingOver(members ...*fixture.MemberFixture) *facts.World {
	return fixture.WorldOf(fixture.HeldByLease().HandsOverCrashLoops(), members...)
}

// begun makes the pod one whose program has run.
func begun(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "c1" }

// unknowns makes a handover of a world late, and its object one that deletes the old pod then.
func unknowns(w *facts.World) *facts.World {
	w.Object.Spec.OnTimeout = v1.TimeoutDeletesOld
	w.Object.Status.TransitionTimestamp = &metav1.Time{Time: fixture.Noon.Add(-time.Hour)}
	return w
}

// disowned removes the owners of the Lease and of the rights on it.
func disowned(w *facts.World) *facts.World {
	w.Lease.OwnerReferences, w.Role.OwnerReferences, w.RoleBinding.OwnerReferences = nil, nil, nil
	return w
}
