package simulate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// newPod returns a pod of the object on a Node.
func newPod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: newTemplate("shop", "one").Spec}
	p.Name, p.Namespace, p.Labels, p.UID = name, shop.Namespace, map[string]string{"app": "shop"}, types.UID(name)
	p.Spec.NodeName = node
	for _, c := range change {
		c(p)
	}
	return p
}

// mounting mounts a claim.
func mounting(p *corev1.Pod) {
	p.Spec.Volumes = (&fixture.PodFixture{Pod: *p}).Claim("data").Spec.Volumes
}

// TestTheSchedulerChoosesANode checks the Node of a new pod.
func TestTheSchedulerChoosesANode(t *testing.T) {
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: effect}} }
	}
	unlike := func(*corev1.Pod) {}
	for _, r := range []struct {
		name string
		east func(*corev1.Node)
		pod  func(*corev1.Pod)
		want string
	}{
		{"the emptiest one", func(*corev1.Node) {}, unlike, "east"},
		{"one without a taint", taint(corev1.TaintEffectNoSchedule), unlike, "west"},
		{"one with a tolerated taint", taint(corev1.TaintEffectNoSchedule), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Value: "yes"}}
		}, "east"},
		{"one without a taint, because the toleration has another value", taint(corev1.TaintEffectNoSchedule), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Value: "no"}}
		}, "west"},
		{"one with any taint", taint(corev1.TaintEffectNoExecute), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, "east"},
		{"one with a preference", taint(corev1.TaintEffectPreferNoSchedule), unlike, "east"},
		{"one that is not cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, unlike, "west"},
		{"one that is Ready", func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, unlike, "west"},
		{"one with the labels", func(n *corev1.Node) { n.Labels = map[string]string{"disk": "ssd"} }, func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}, "east"},
		{"none without the labels", func(*corev1.Node) {}, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, ""},
		{"the one with the claim", func(*corev1.Node) {}, mounting, "west"},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := newCluster(newPod("a", "west", mounting))
			s := New(c, shop)
			Edit(c, s.Node("east"), r.east)
			if got := s.freeNode(newPod("b", "", r.pod)); got != r.want {
				t.Errorf("the pod is bound to %q, want %q", got, r.want)
			}
		})
	}
}

// TestNodesFollowTheirMachines checks a machine that is disconnected. Its Node has several conditions.
func TestNodesFollowTheirMachines(t *testing.T) {
	c := newCluster(newPod("a", "east"))
	s := New(c, shop)
	rest(s)
	if !podstate.Ready(s.pod("a")) {
		t.Fatal("the pod is not Ready")
	}
	s.Machine("east").Reachable = false
	rest(s)
	if isReady(s.Node("east")) || podstate.Ready(s.pod("a")) || s.Node("east").Status.Conditions[0].Status != corev1.ConditionFalse {
		t.Errorf("the Node is %v", s.Node("east").Status)
	}
	s.Machine("east").Reachable = true
	if rest(s); !isReady(s.Node("east")) || !podstate.Ready(s.pod("a")) {
		t.Error("the Node is not Ready again")
	}
}

// TestPodsOfLostNodesAreCollected checks a Node that is out of service, and one that is missing.
func TestPodsOfLostNodesAreCollected(t *testing.T) {
	c := newCluster(newPod("a", "east"), newPod("b", "west"))
	s := New(c, shop)
	rest(s)
	s.SwitchOff(s.Machine("east"))
	Edit(c, s.Node("east"), func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} })
	if rest(s); s.pod("a") != nil {
		t.Error("the pod of a Node that is out of service remains")
	}
	s.SwitchOff(s.Machine("west"))
	c.Remove(s.Node("west"))
	s.Machine("west").MissingSince = c.Now
	if rest(s); s.pod("b") == nil {
		t.Error("the pod of a missing Node is deleted at once")
	}
	c.Now = c.Now.Add(time.Minute)
	if rest(s); s.pod("b") != nil {
		t.Error("the pod of a missing Node remains")
	}
}

// TestABudgetBlocksADrain checks that a drain evicts only pods that are not Ready.
func TestABudgetBlocksADrain(t *testing.T) {
	s := New(newCluster(newPod("a", "east")), shop)
	rest(s)
	kubelet.Cordon(s.Cluster, "east", true)
	s.Put(newBudget())
	s.Machine("east").Drained = true
	if rest(s); s.pod("a") == nil {
		t.Error("the Ready pod is evicted")
	}
	s.Remove(newBudget())
	if rest(s); s.pod("a") != nil {
		t.Error("the pod is not evicted")
	}
}
