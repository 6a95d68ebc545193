package simulate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// TestContainersOfLiveObjects tests that containers, roles and data come from the statuses.
func TestContainersOfLiveObjects(t *testing.T) {
	c := clusterWith(t, fixture.SetOf(3, 1))
	set := setIn(t, c)
	set.Status.Sequences = []v1alpha1.Sequence{{Pod: "rss-shop-0", Sequence: "70"}, {Pod: "rss-shop-1", Sequence: "50"}, {Pod: "rss-shop-2", Sequence: "40"}}
	set.Status.Members.Secondary = []string{"rss-shop-1"}
	c.Put(set)
	p := podsIn(c)["rss-shop-0"].DeepCopy()
	p.Status.ContainerStatuses[0].ContainerID, p.Status.ContainerStatuses[0].RestartCount = "containerd://1", 7
	c.Put(p)
	s := Kind{}.Start(c, shop).(*Simulation)
	for pod, want := range map[string]struct {
		role     record.State
		sequence uint64
	}{"rss-shop-0": {record.Primary, 70}, "rss-shop-1": {record.Secondary, 70}, "rss-shop-2": {record.Idle, 40}} {
		if got := s.DB.Containers[pod]; got == nil || got.Role != want.role || s.DB.Disk(pod).sequence() != want.sequence {
			t.Fatalf("%s is %+v with sequence %d", pod, got, s.DB.Disk(pod).sequence())
		}
	}
	primary := s.DB.Containers["rss-shop-0"]
	if primary.ID != "containerd://1" || primary.number != 7 {
		t.Errorf("the container is %+v", primary)
	}
	s.DB.Kill(primary)
	s.DB.Begin(podsIn(c)["rss-shop-0"])
	if next := s.DB.Containers["rss-shop-0"]; next.number != 8 || next.ID == primary.ID || next.Role != record.Idle {
		t.Errorf("the next container is %+v", next)
	}
}

// TestAGhost tests a container that outlives its pod.
func TestAGhost(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	old := s.DB.Containers["rss-shop-0"]
	s.DeleteNow(podsIn(s.Cluster)["rss-shop-0"])
	next := &corev1.Pod{}
	next.Namespace, next.Name, next.UID, next.Spec = shop.Namespace, "rss-shop-0", "next", corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}}
	s.DB.Begin(next)
	if !s.DB.isRunning(old) || len(s.DB.Ghosts) != 1 || len(s.DB.All()) != 4 || s.DB.Container(next).UID != "next" {
		t.Errorf("the ghosts are %v", s.DB.Ghosts)
	}
	s.DB.Kill(old)
	if s.DB.isRunning(old) || len(s.DB.Ghosts) > 0 {
		t.Error("the ghost does not end")
	}
}

func TestWhoReachesWhom(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	a, b := s.DB.Containers["rss-shop-0"], s.DB.Containers["rss-shop-1"]
	if !s.DB.Reach(a, b) {
		t.Error("healthy members do not reach each other")
	}
	b.Frozen = true
	if s.DB.Reach(a, b) {
		t.Error("a frozen member is reached")
	}
	b.Thaw(s)
	if !s.DB.Reach(a, b) || len(s.DB.Acting()) != 1 {
		t.Error("a member that continues is not reached")
	}
}
