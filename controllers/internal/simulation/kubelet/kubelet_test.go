package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// nodeOf returns a Node as a real one reports itself: with other conditions before Ready.
func nodeOf(name, zone string, taints ...corev1.Taint) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}, Spec: corev1.NodeSpec{Taints: taints}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

func podOf(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}, {Name: "log", Image: "log:1"}}}}
}

// settle makes all moves until there are none, and returns the pod of that name.
func settle(t *testing.T, c *simulation.Cluster, name string) *corev1.Pod {
	t.Helper()
	for range 50 {
		moves := Moves(c)
		for _, move := range moves {
			move()
		}
		if len(moves) > 0 {
			continue
		}
		var pod corev1.Pod
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "prod", Name: name}, &pod); err != nil {
			t.Fatal(err)
		}
		return &pod
	}
	t.Fatalf("the moves do not end: %q", c.Story)
	return nil
}

func TestAllContainersRun(t *testing.T) {
	c := simulation.New(noon)
	c.Put(nodeOf("n1", "a"))
	c.Put(podOf("shop-0"))
	pod := settle(t, c, "shop-0")
	if !podstate.Ready(pod) || len(pod.Status.ContainerStatuses) != 2 || pod.Status.ContainerStatuses[1].Image != "log:1" {
		t.Fatalf("%+v", pod.Status)
	}
	pod.Spec.Containers[1].Image = "log:2"
	c.Put(pod)
	pod = settle(t, c, "shop-0")
	db, log := pod.Status.ContainerStatuses[0], pod.Status.ContainerStatuses[1]
	if db.RestartCount != 0 || log.RestartCount != 1 || log.Image != "log:2" || db.ContainerID == log.ContainerID {
		t.Errorf("a new image of one container: %+v, %+v", db, log)
	}
	pod.Spec.Containers[1].Image = BadImage
	c.Put(pod)
	if pod = settle(t, c, "shop-0"); podstate.Ready(pod) {
		t.Errorf("Ready with a bad image: %+v", pod.Status)
	}
}

func TestPodsAreBoundWhereTheyMayRun(t *testing.T) {
	taint := corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}
	for _, row := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
	}{
		{"no constraint", func(*corev1.Pod) {}, "n2"},
		{"a node selector", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "c"} }, "n3"},
		{"a node selector of a tainted node", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"} }, ""},
		{"a toleration", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
			p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}, "n1"},
	} {
		c := simulation.New(noon)
		for _, node := range []*corev1.Node{nodeOf("n1", "a", taint), nodeOf("n2", "b"), nodeOf("n3", "c")} {
			c.Put(node)
		}
		pod := podOf("shop-0")
		row.change(pod)
		c.Put(pod)
		if got := settle(t, c, "shop-0").Spec.NodeName; got != row.want {
			t.Errorf("%s: on %q, want %q", row.name, got, row.want)
		}
	}
}

func TestAFinalizerKeepsAPod(t *testing.T) {
	c := simulation.New(noon)
	c.Put(nodeOf("n1", "a"))
	pod := podOf("shop-0")
	pod.Finalizers = []string{"example.com/keep"}
	c.Put(pod)
	c.Delete(settle(t, c, "shop-0"))
	if pod = settle(t, c, "shop-0"); *pod.DeletionGracePeriodSeconds != 0 {
		t.Errorf("the pod did not end: %+v", pod.ObjectMeta)
	}
}
