package slim

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

func TestImages(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		kept := Kept{Images: func(*corev1.Pod) bool { return keeps }}
		got, err := kept.Pod(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one", Command: []string{"dropped"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got.(*corev1.Pod).Spec.Containers)
		if want := map[bool]string{true: `[{"name":"main","image":"one","resources":{}}]`, false: "null"}[keeps]; err != nil || string(text) != want {
			t.Errorf("the cache has containers %s, want %s", text, want)
		}
	}
}

func TestRestartPolicy(t *testing.T) {
	never := corev1.ContainerRestartPolicyNever
	for _, container := range []corev1.Container{{}, {RestartPolicy: &never}, {RestartPolicyRules: []corev1.ContainerRestartRule{{}}}} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{}, container}}}
		got, err := Kept{}.Pod(pod)
		if err != nil {
			t.Fatal(err)
		}
		if live, cached := podstate.AlwaysRestarts(pod), podstate.AlwaysRestarts(got.(*corev1.Pod)); live != cached {
			t.Errorf("AlwaysRestarts is %t, and %t of the pod in the cache; its container: %+v", live, cached, container)
		}
	}
}

func TestPod(t *testing.T) {
	now := metav1.Now()
	full := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: now,
			DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To(int64(30)),
			Labels: map[string]string{"kept": "1", "dropped": "1"}, Annotations: map[string]string{"kept": "2", "dropped": "2"},
			OwnerReferences: []metav1.OwnerReference{{UID: "owner"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "dropped"}}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "dropped", Image: "dropped"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, ObservedGeneration: 2, HostIP: "dropped",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: "dropped", LastTransitionTime: now},
				{Type: corev1.PodScheduled}, {Type: corev1.DisruptionTarget, Reason: "why"}, {Type: corev1.PodResizePending}, {Type: corev1.PodResizeInProgress},
				{Type: corev1.PodInitialized, Reason: "dropped"}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "dropped", ImageID: "i", ContainerID: "c", RestartCount: 4,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "w", Message: "dropped"}}},
				{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "dropped"}}}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "dropped", ContainerID: "ic",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "iw", Message: "dropped"}}}}},
	}
	kept := Kept{Labels: []string{"kept", "absent"}, Annotations: []string{"kept"}, Containers: func(*corev1.Pod) bool { return true }}
	got, err := kept.Pod(full)
	if err != nil {
		t.Fatal(err)
	}
	cut := got.(*corev1.Pod)
	text, err := json.Marshal(cut)
	if err != nil || strings.Contains(string(text), "dropped") {
		t.Errorf("a field is kept that no decision needs: %s", text)
	}
	for what, ok := range map[string]bool{
		"identity":         cut.Name == "a" && cut.Namespace == "ns" && cut.UID == "u" && cut.ResourceVersion == "7" && cut.Generation == 3,
		"times":            cut.CreationTimestamp == now && cut.DeletionTimestamp == &now && *cut.DeletionGracePeriodSeconds == 30 && cut.Status.StartTime == &now,
		"labels":           len(cut.Labels) == 1 && cut.Labels["kept"] == "1" && len(cut.Annotations) == 1 && cut.Annotations["kept"] == "2",
		"owner":            cut.OwnerReferences[0].UID == "owner",
		"node":             cut.Spec.NodeName == "n1",
		"phase":            cut.Status.Phase == corev1.PodRunning && cut.Status.ObservedGeneration == 2,
		"five conditions":  len(cut.Status.Conditions) == 5 && cut.Status.Conditions[0].LastTransitionTime == now && cut.Status.Conditions[2].Reason == "why",
		"container states": cut.Status.ContainerStatuses[0].ImageID == "i" && cut.Status.ContainerStatuses[0].ContainerID == "c" && cut.Status.ContainerStatuses[0].RestartCount == 4 && cut.Status.ContainerStatuses[0].State.Running != nil,
		"reasons of waiting containers": waitingFor(cut.Status.ContainerStatuses) == ",w," && waitingFor(cut.Status.InitContainerStatuses) == "iw" &&
			cut.Status.InitContainerStatuses[0].ContainerID == "ic",
	} {
		if !ok {
			t.Errorf("lost: %s", what)
		}
	}
	if bare, _ := kept.Pod(&corev1.Pod{}); bare.(*corev1.Pod).Labels != nil {
		t.Error("a pod without labels allocates a map")
	}
	kept.Containers = nil
	if got, _ := kept.Pod(full); len(got.(*corev1.Pod).Status.ContainerStatuses) > 0 || len(got.(*corev1.Pod).Status.InitContainerStatuses) > 0 {
		t.Error("container states are kept that were not requested")
	}
	claim, _ := kept.Metadata(&metav1.PartialObjectMetadata{ObjectMeta: full.ObjectMeta})
	if text, err := json.Marshal(claim); err != nil || strings.Contains(string(text), "dropped") || len(claim.(*metav1.PartialObjectMetadata).Labels) != 1 {
		t.Errorf("%s of a claim is kept", text)
	}
}

// V6: with Causes, the explanation of a cached pod equals that of the complete pod. Without Causes,
// nothing more of the pod is kept.
func TestV6CausesAreKeptForThoseWhoAsk(t *testing.T) {
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "why", Message: "dropped", ContainerID: "dropped"}}
	}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	notReady := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "dropped"}
	for name, status := range map[string]corev1.PodStatus{
		"no Node":              {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room"}}},
		"rejected by its Node": {Phase: corev1.PodFailed, Reason: "SysctlForbidden", Message: "Pod was rejected: missing"},
		"a missing image": {Conditions: []corev1.PodCondition{notReady}, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", Image: "image", State: waits("ErrImagePull", "dropped")}}},
		"a missing configuration": {Conditions: []corev1.PodCondition{notReady}, InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", State: waits("CreateContainerConfigError", "missing")}}},
		"a terminated container that was not restarted yet": {Conditions: []corev1.PodCondition{notReady}, ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: ended(3)}}},
		"crashes": {Conditions: []corev1.PodCondition{notReady}, ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: waits("CrashLoopBackOff", "dropped"), LastTerminationState: ended(3)}}},
		"an init container that crashed and completed": {Conditions: []corev1.PodCondition{notReady}, InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", State: ended(0), LastTerminationState: ended(3)}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "b", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	} {
		full := &corev1.Pod{Status: status}
		all := Kept{Containers: func(*corev1.Pod) bool { return true }}
		bare, _ := all.Pod(full)
		all.Causes = true
		cut, err := all.Pod(full)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(cut)
		if err != nil || strings.Contains(string(text), "dropped") {
			t.Errorf("%s: a field is kept that no message uses: %s", name, text)
		}
		if got, want := causes.Of(cut.(*corev1.Pod)).String(), causes.Of(full).String(); got != want || want == "" {
			t.Errorf("%s: from the cache %q, want %q", name, got, want)
		}
		if text, err := json.Marshal(bare); err != nil || strings.Contains(string(text), "exitCode") || strings.Contains(string(text), "no room") || strings.Contains(string(text), "missing") {
			t.Errorf("%s: causes are kept that were not requested: %s", name, text)
		}
	}
}

// waitingFor returns the waiting reasons of the containers, "" for a container that is not waiting.
func waitingFor(statuses []corev1.ContainerStatus) string {
	reasons := make([]string, len(statuses))
	for i, s := range statuses {
		if s.State.Waiting != nil {
			reasons[i] = s.State.Waiting.Reason
		}
	}
	return strings.Join(reasons, ",")
}

func TestNode(t *testing.T) {
	full := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.Now(), Labels: map[string]string{"dropped": ""}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "t"}}, Unschedulable: true, ProviderID: "dropped"},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"dropped"}}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Reason: "dropped"}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "dropped"}}},
	}
	got, err := Node(full)
	if err != nil {
		t.Fatal(err)
	}
	cut := got.(*corev1.Node)
	text, err := json.Marshal(cut)
	if err != nil || strings.Contains(string(text), "dropped") {
		t.Errorf("a field is kept that no decision needs: %s", text)
	}
	if cut.Name != "n" || cut.UID != "u" || cut.CreationTimestamp != full.CreationTimestamp || len(cut.Spec.Taints) != 1 || !cut.Spec.Unschedulable ||
		len(cut.Status.Conditions) != 1 || cut.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("a field is lost: %s", text)
	}
}

// An object that is not a pod (a tombstone) is returned unchanged.
func TestOthersPass(t *testing.T) {
	if got, err := (Kept{}).Pod("tombstone"); got != "tombstone" || err != nil {
		t.Errorf("Pod: %v, %v", got, err)
	}
	if got, err := Node("tombstone"); got != "tombstone" || err != nil {
		t.Errorf("Node: %v, %v", got, err)
	}
}
