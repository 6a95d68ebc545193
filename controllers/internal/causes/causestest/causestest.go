// Package causestest contains samples of the situations in the table of causes, as real clusters report
// them, for the tests of all kinds.
package causestest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sample is an example of a situation. Exactly one of Refused, Told, Fails and Pod is set.
type Sample struct {
	// Situation is the situation of the row in the table.
	Situation string
	// Refused is the error of the API server when the pod is created.
	Refused string
	// Told is an event about the pod.
	Told corev1.Event
	// Fails is true for a member that fails to start.
	Fails bool
	// Pod sets the status of a pod. The status has existed since the given time. If Deleted is true,
	// the pod was deleted long ago.
	Pod     func(pod *corev1.Pod, since time.Time)
	Deleted bool
	// Shows is a text that the message must contain.
	Shows string
}

// Container is the name of the container of a sample, and Image its image.
const (
	Container = "postgres"
	Image     = "registry/x:1"
)

// All contains at least one sample of each row of the table, except the rows of Jobs.
var All = []Sample{
	refused("a claim of the pod is being deleted", "failed to create PVC data-db-0: pvc data-db-0 is being deleted", "data-db-0"),
	refused("the namespace is being deleted", `unable to create new content in namespace shop because it is being terminated`, "being terminated"),
	refused("a ResourceQuota for pods, claims or resources is exceeded", "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3", "exceeded quota: small"),
	refused("a ResourceQuota for pods, claims or resources is exceeded", `failed to create PVC data-db-0: persistentvolumeclaims "data-db-0" is forbidden: exceeded quota: small, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=3, limited: persistentvolumeclaims=3`, "exceeded quota: small"),
	refused("a ResourceQuota requires requests or limits", "failed quota: cpu: must specify limits.cpu for: postgres", "must specify limits.cpu"),
	refused("a LimitRange does not allow the resources", "maximum cpu usage per Container is 500m, but limit is 1", "maximum cpu usage per Container is 500m"),
	refused("a LimitRange does not allow the resources", "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000", "ratio per Container is 2"),
	refused("PodSecurity does not allow the pod", `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, "allowPrivilegeEscalation"),
	refused("a ValidatingAdmissionPolicy denies the pod", `ValidatingAdmissionPolicy 'no-root' with binding 'all' denied request: not as root`, "not as root"),
	refused("an admission webhook denies the pod", `admission webhook "policy.example" denied the request: no`, "policy.example"),
	refused("an admission webhook is unreachable", `Internal error occurred: failed calling webhook "policy.example": no endpoints available for service "policy"`, "no endpoints available"),
	refused("the ServiceAccount is missing", `error looking up service account shop/keeper: serviceaccount "keeper" not found`, `"keeper" not found`),
	refused("the RuntimeClass is missing", `pod rejected: RuntimeClass "gvisor" not found`, `"gvisor" not found`),
	refused("the PriorityClass is missing", "no PriorityClass with name high was found", "name high"),
	refused("the API server rejects the pod as invalid", `Pod "db-0" is invalid: spec.containers[0].image: Required value`, "spec.containers[0].image"),
	refused("the API server rejects the pod for another reason", "the server was unable to return a response", "unable to return"),

	unscheduled("a scheduling gate blocks the pod", corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates", "SchedulingGated"),
	{Situation: "no scheduler handles the pod", Shows: "NotScheduled", Pod: func(pod *corev1.Pod, since time.Time) {
		pod.CreationTimestamp, pod.Spec.NodeName, pod.Status = metav1.NewTime(since), "", corev1.PodStatus{Phase: corev1.PodPending}
	}},
	unschedulable("the claim of the pod is missing", `0/3 nodes are available: persistentvolumeclaim "data-db-0" not found. not found`, "data-db-0"),
	unschedulable("the volume of a claim is lost", `0/3 nodes are available: persistentvolumeclaim "data-db-0" bound to non-existent persistentvolume "pv-7". preemption: none.`, "pv-7"),
	unschedulable("the claim of the pod is being deleted", `0/3 nodes are available: persistentvolumeclaim "data-db-0" is being deleted. none.`, "data-db-0"),
	unschedulable("a claim is not bound: its StorageClass is missing, or nothing provisions it", "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. none.", "unbound immediate"),
	unschedulable("no Node has enough cpu, memory or other resources", "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient cpu. no new claims to deallocate, preemption: none.", "2 Insufficient cpu; "),
	unschedulable("each Node has the max number of pods", "0/3 nodes are available: 3 Too many pods.", "Too many pods"),
	unschedulable("the volume is on a Node or in a zone where the pod cannot run", "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) had volume node affinity conflict.", "volume node affinity"),
	unschedulable("no Node satisfies the pod anti-affinity", "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.", "anti-affinity"),
	unschedulable("no Node satisfies the topology spread constraints", "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints.", "topology spread"),
	unschedulable("no Node matches the node affinity or selector", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", "affinity/selector"),
	unschedulable("all Nodes have taints, or are cordoned", "0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: gpu}.", "untolerated taint"),
	unschedulable("the scheduler finds no Node for another reason", "no nodes available to schedule pods", "no nodes available"),

	waits("the image cannot be pulled: it is missing, or its registry refuses access", "ImagePullBackOff", `Back-off pulling image "registry/x:1"`, "ImagePullBackOff: image registry/x:1 (container postgres); check the image name and the pull secrets"),
	waits("the image cannot be pulled: it is missing, or its registry refuses access", "ErrImagePull", "401 Unauthorized", "ImagePullBackOff: image registry/x:1"),
	waits("the name of the image is invalid", "InvalidImageName", "couldn't parse image name", "InvalidImageName: image registry/x:1"),
	waits("the image is missing on the Node, and its pull policy is Never", "ErrImageNeverPull", "", "ErrImageNeverPull: image registry/x:1"),
	waits("a key of a ConfigMap or Secret is missing", "CreateContainerConfigError", "couldn't find key port in ConfigMap shop/settings", "key port"),
	waits("a ConfigMap is missing", "CreateContainerConfigError", `configmap "settings" not found`, `configmap "settings" not found`),
	waits("a Secret is missing", "CreateContainerConfigError", `secret "password" not found`, `secret "password" not found`),
	waits("the image runs as root, and the pod does not allow it", "CreateContainerConfigError", "container has runAsNonRoot and image will run as root", "runAsNonRoot"),
	waits("a container cannot be configured for another reason", "CreateContainerConfigError", "services have not yet been read at least once", "services"),
	waits("a container cannot be created", "CreateContainerError", `failed to generate container spec: no command specified`, "no command specified"),
	crashes("the program of a container is missing or not executable", 128, "StartError", false, "code 128 (StartError)"),
	crashes("a container needs more memory than its limit", 137, "OOMKilled", false, "code 137 (OOMKilled)"),
	crashes("an init container fails repeatedly", 1, "Error", true, "init container postgres ended with code 1"),
	crashes("a container exits repeatedly, or its liveness probe fails", 1, "Error", false, "container postgres ended with code 1"),
	told("a volume cannot be mounted, for example because of a missing ConfigMap or Secret", "FailedMount", `MountVolume.SetUp failed for volume "conf" : configmap "settings" not found`, `configmap "settings" not found`),
	told("a volume cannot be attached to the Node", "FailedAttachVolume", `Multi-Attach error for volume "pv-7" Volume is already exclusively attached to one node and can't be attached to another`, "Multi-Attach"),
	told("the sandbox of the pod cannot be created because of the network or the RuntimeClass handler", "FailedCreatePodSandBox", `Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "gvisor" is configured`, "gvisor"),
	{Situation: "the commands that start a member fail repeatedly", Fails: true, Shows: "StartFails: "},

	ended("the kubelet does not allow a sysctl", "SysctlForbidden", `Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted`, `SysctlForbidden: forbidden sysctl: "kernel.msgmax"`),
	ended("a plugin or manager of the kubelet rejects the pod", "UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to no healthy devices present", "no healthy devices"),
	ended("the Node has no room when the pod arrives", "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu, requested: 100, used: 950, capacity: 1000", "OutOfcpu"),
	ended("the Node no longer matches the pod", "NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed", "NodeAffinity"),
	ended("the Node ran out of memory, disk or process IDs, or the pod exceeded its ephemeral storage limit", "Evicted", `The node was low on resource: memory.`, "Evicted: The node was low on resource: memory"),
	ended("the Node is shutting down", "Terminated", "Pod was terminated in response to imminent node shutdown.", "imminent node shutdown"),
	ended("the pod arrived while the Node was shutting down", "NodeShutdown", "Pod was rejected as the node is shutting down.", "NodeShutdown"),
	ended("the pod was preempted by a pod of higher priority", "Preempting", "Preempted in order to admit critical pod", "Preempting"),
	ended("the pod ran longer than activeDeadlineSeconds", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline", "DeadlineExceeded"),
	ended("the pod failed for another reason", "AppArmor", "Pod was rejected: Cannot enforce AppArmor", "AppArmor: Cannot enforce AppArmor"),

	unready("a readiness gate of the pod is not True", "ReadinessGatesNotReady", "a readiness gate is not True"),
	unready("the readiness probe does not succeed", "ContainersNotReady", "its readiness probe does not succeed"),

	{Situation: "a finalizer of another client blocks the deletion of the pod", Deleted: true, Shows: "finalizer example.com/hold", Pod: func(pod *corev1.Pod, since time.Time) {
		deleted(pod, since)
		pod.Spec.NodeName, pod.Finalizers = "", append(pod.Finalizers, "example.com/hold")
	}},
	{Situation: "the kubelet has not reported that the pod ended, for example because the Node is unreachable", Deleted: true, Shows: "has not reported that its containers have ended", Pod: deleted},
}

func refused(situation, text, shows string) Sample {
	return Sample{Situation: situation, Refused: text, Shows: shows}
}

func told(situation, reason, text, shows string) Sample {
	return Sample{Situation: situation, Told: corev1.Event{Reason: reason, Message: text}, Shows: shows}
}

func unscheduled(situation, reason, message, shows string) Sample {
	return Sample{Situation: situation, Shows: shows, Pod: func(pod *corev1.Pod, since time.Time) {
		pod.CreationTimestamp, pod.Spec.NodeName = metav1.NewTime(since), ""
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(since)}}}
	}}
}

func unschedulable(situation, message, shows string) Sample {
	return unscheduled(situation, corev1.PodReasonUnschedulable, message, shows)
}

// notReady sets a status without containers.
func notReady(pod *corev1.Pod, since time.Time, reason string) {
	pod.CreationTimestamp = metav1.NewTime(since)
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = "n1"
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(since)},
	}}
}

func waits(situation, reason, message, shows string) Sample {
	return Sample{Situation: situation, Shows: shows, Pod: func(pod *corev1.Pod, since time.Time) {
		notReady(pod, since, "ContainersNotReady")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, Image: Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}}
}

func crashes(situation string, code int32, reason string, isInit bool, shows string) Sample {
	return Sample{Situation: situation, Shows: shows, Pod: func(pod *corev1.Pod, since time.Time) {
		notReady(pod, since, "ContainersNotReady")
		status := corev1.ContainerStatus{Name: Container, Image: Image, RestartCount: 4,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
		if isInit {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{status}
			status = corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	}}
}

func ended(situation, reason, message, shows string) Sample {
	return Sample{Situation: situation, Shows: shows, Pod: func(pod *corev1.Pod, since time.Time) {
		notReady(pod, since, "PodFailed")
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
	}}
}

func unready(situation, reason, shows string) Sample {
	return Sample{Situation: situation, Shows: shows, Pod: func(pod *corev1.Pod, since time.Time) {
		notReady(pod, since, reason)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, Image: Image, ContainerID: "containerd://1",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}}}
	}}
}

func deleted(pod *corev1.Pod, since time.Time) {
	notReady(pod, since, "ContainersNotReady")
	at, grace := metav1.NewTime(since), int64(0)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
}
