package simulate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestThePlaceOfAPod tests that a pod with a claim returns to its node, and that other pods get the least used node.
func TestThePlaceOfAPod(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	used := map[string]bool{}
	for _, p := range s.Pods() {
		used[p.Spec.NodeName] = true
	}
	if len(used) != 3 {
		t.Errorf("three pods are on %v", used)
	}
	p := podsIn(s.Cluster)["rss-shop-0"].DeepCopy()
	home := p.Spec.NodeName
	if got := s.place(p); got != home {
		t.Errorf("the pod is placed on %s, was on %s", got, home)
	}
	for _, lose := range []func(){
		func() { kubelet.Cordon(s.Cluster, home, true) },
		func() { kubelet.Cordon(s.Cluster, home, false); kubelet.Turn(s.Cluster, home, false) },
	} {
		lose()
		if got := s.place(p); got == "" || used[got] {
			t.Errorf("the pod is placed on %q, and its node is lost", got)
		}
	}
	s.Place = func(*corev1.Pod) string { return "elsewhere" }
	if got := s.place(p); got != "elsewhere" {
		t.Errorf("the pod is placed on %s", got)
	}
}

// TestAPodOfSeveralContainers tests that the end of a pod is that of all its containers.
func TestAPodOfSeveralContainers(t *testing.T) {
	set := fixture.SetOf(1, 1)
	set.Spec.Pod.Containers = append(set.Spec.Pod.Containers, corev1.Container{Name: "beside", Image: "one"})
	set.Spec.Pod.InitContainers = []corev1.Container{{Name: "first", Image: "one"},
		{Name: "sidecar", Image: "one", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	s := begun(t, set)
	p := podsIn(s.Cluster)["rss-shop-0"].DeepCopy()
	if n := len(p.Status.ContainerStatuses); n != 2 || p.Status.ContainerStatuses[0].ContainerID == p.Status.ContainerStatuses[1].ContainerID {
		t.Fatalf("the pod has %d statuses: %v", n, p.Status.ContainerStatuses)
	}
	if init := p.Status.InitContainerStatuses; len(init) != 2 || init[0].State.Terminated == nil || init[1].State.Running == nil {
		t.Errorf("the init containers are %v", init)
	}
	s.crashed(p, mainStatus(p))
	if ShowsRunning(p) || statusOf(p, "beside").State.Running == nil {
		t.Error("a crash ends another container")
	}
	s.ended(p)
	p.DeletionTimestamp = ptr.To(p.CreationTimestamp)
	if !podstate.Stopped(p, true) {
		t.Errorf("the pod has not stopped: %v", p.Status)
	}
}

// TestResourcesInPlace tests that a kubelet resizes all containers, if there is room.
func TestResourcesInPlace(t *testing.T) {
	set := fixture.SizedSet("1")
	set.Spec.Replicas = new(int32(3))
	s := begun(t, set)
	if len(s.Machines()) > 0 {
		t.Fatal("kubelets act at rest")
	}
	before := podsIn(s.Cluster)
	edit(t, s.Cluster, func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Resources = fixture.Asking("2") })
	settle(t, s.Cluster)
	for name, p := range podsIn(s.Cluster) {
		if p.UID != before[name].UID || !IsSized(p) || p.Status.ContainerStatuses[0].Resources.Requests.Cpu().String() != "2" {
			t.Errorf("%s is not resized in place: %v", name, p.Status.ContainerStatuses[0].Resources)
		}
	}
	s.Room = 1
	p := podsIn(s.Cluster)["rss-shop-0"].DeepCopy()
	p.Spec.Containers[0].Resources = fixture.Asking("9")
	if s.sizes(p); !isResizing(p) || podstate.Condition(p, corev1.PodResizePending).Reason != corev1.PodReasonInfeasible {
		t.Errorf("the conditions are %v", p.Status.Conditions)
	}
}
