package simulate

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
)

// rest lets all move, except for operators, until nothing moves.
func rest(s *Simulation) {
	for range 1000 {
		moves := s.Moves()
		if len(moves) == 0 {
			return
		}
		moves[0].Do()
	}
	panic("the moves do not end")
}

func newBudget() *policyv1.PodDisruptionBudget { return children.BuildBudget(newObject()) }

// TestMachinesOfNodes checks that the machine of a Node that is not Ready is not reachable, and that no pod on it changes.
func TestMachinesOfNodes(t *testing.T) {
	c := newCluster(newObject(), newPod("a", "east"), newPod("b", "gone"))
	Edit(c, New(c, shop).Node("east"), func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown })
	s := New(c, shop)
	if s.Knows("east") || !s.Knows("west") || s.Knows("gone") {
		t.Error("the machines do not have the states of their Nodes")
	}
	c.Delete(s.pod("b"))
	for _, m := range s.KubeletMoves() {
		m.Do()
	}
	if s.pod("a").Status.ContainerStatuses != nil || s.pod("b") == nil {
		t.Error("a kubelet that is not reachable changes its pods")
	}
	c.Put(&corev1.Node{ObjectMeta: s.Node("west").ObjectMeta, Status: s.Node("west").Status})
	north := s.Node("west").DeepCopy()
	north.Name = "north"
	c.Put(north)
	if s.Moves(); !s.Knows("north") {
		t.Error("a new Node has no machine")
	}
}

// leased returns a simulation at rest of an object with fencing by a Lease.
func leased(t *testing.T, replicas int32) *Simulation {
	t.Helper()
	_, o := run(t, func(s *v1.StatefulSingleton) { s.Spec.Fencing = &v1.Fencing{Mode: v1.FencingLease} }, newDeployment("shop", replicas))
	return o.(*Operator).s
}

// TestAgentsRenewTheLease checks that the agent of the holder renews the Lease while its machine is reachable.
func TestAgentsRenewTheLease(t *testing.T) {
	s := leased(t, 1)
	if !s.holdsLease(s.pod("shop-1-a")) {
		t.Fatalf("the Lease is %v", s.lease())
	}
	age := func() (seconds float64) { return s.Now.Sub(s.lease().Spec.RenewTime.Time).Seconds() }
	s.Now = s.Now.Add(children.LeaseDuration(s.pod("shop-1-a")))
	if s.renew(); age() != 0 {
		t.Error("the Lease is not renewed")
	}
	version := s.lease().ResourceVersion
	if s.renew(); s.lease().ResourceVersion != version {
		t.Error("the Lease is renewed too often")
	}
	s.Machine(s.pod("shop-1-a").Spec.NodeName).Reachable = false
	s.Now = s.Now.Add(children.LeaseDuration(s.pod("shop-1-a")))
	if s.renew(); age() == 0 {
		t.Error("an agent that is disconnected renews the Lease")
	}
}

// TestAgentsHandTheLeaseOver checks that the agent names its successor when the program ends.
func TestAgentsHandTheLeaseOver(t *testing.T) {
	s := leased(t, 2)
	a, b := s.pod("shop-1-a"), s.pod("shop-1-b")
	epoch := fencing.EpochOf(s.lease())
	Edit(s.Cluster, s.lease(), func(l *coordinationv1.Lease) {
		l.Annotations = map[string]string{v1.AnnotationNext: fencing.Identity(b)}
	})
	s.Delete(a)
	for s.pod("shop-1-a") != nil && !s.Bodies[a.UID].Over {
		s.KubeletMoves()[0].Do()
	}
	if !s.holdsLease(b) || fencing.EpochOf(s.lease()) != epoch+1 || s.lease().Annotations[v1.AnnotationNext] != "" {
		t.Errorf("the Lease is %v", s.lease())
	}
}

// TestCrashesAndPowerFailures checks that programs wait for their gate again after the machine was off.
func TestCrashesAndPowerFailures(t *testing.T) {
	c, o := run(t, nil, newDeployment("shop", 1))
	s := o.(*Operator).s
	b := s.Bodies[s.pod("shop-1-a").UID]
	s.Crash(b)
	if rest(s); b.Main != AtWork || s.pod("shop-1-a").Status.ContainerStatuses[0].RestartCount != 1 {
		t.Errorf("the program is in state %q after a crash", b.Main)
	}
	m := s.Machine(b.Pod.Spec.NodeName)
	s.SwitchOff(m)
	if rest(s); b.Main != NotStarted {
		t.Error("a program runs on a machine that is off")
	}
	s.Boot(m)
	if rest(s); b.Main != AtWork {
		t.Errorf("the program is in state %q:\n%s", b.Main, tail(c))
	}
}
