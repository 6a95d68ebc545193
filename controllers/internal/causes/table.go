package causes

import (
	"strings"

	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// Words of causes. Most are reasons of the kubelet, the scheduler or the API server. The API packages
// have constants for only a few of them.
const (
	CrashLoop       = "CrashLoopBackOff"
	Unschedulable   = "Unschedulable"
	SchedulingGated = "SchedulingGated"
	Terminating     = "Terminating"

	imagePull    = "ImagePullBackOff"
	invalidImage = "InvalidImageName"
	neverPull    = "ErrImageNeverPull"
	configError  = "CreateContainerConfigError"
	createError  = "CreateContainerError"
	running      = "Running" // as in kubectl get for a pod that is not Ready
	outOf        = "OutOf"   // prefix; the resource follows
	failedCreate = "FailedCreate"
	jobSuspended = "JobSuspended"
	jobFailed    = "JobFailed"

	// StartFails is the word for a member of a ReplicatedStatefulSet that its commands fail to start.
	StartFails = "StartFails"
	ended      = "Failed"
)

// Verbs of messages.
const (
	notCreated   = "cannot be created"
	notScheduled = "cannot be scheduled"
	notStarted   = "cannot start"
	notKept      = "was terminated by its Node"
	notReady     = "is not Ready"
	notDeleted   = "is not deleted"
	notDone      = "is not complete"
)

// Row is a situation in which a pod or Job is missing, does not run, or is not deleted.
type Row struct {
	Situation string
	// Word is Cause.Word. Cause.Detail must contain one of the texts in Says, unless Says is empty.
	Word string
	Says []string
	// Seen is where the API reports the situation.
	Seen string
	// Verb describes what fails.
	Verb   string
	Effect kstatus.Effect
	// Advice is how to resolve the situation. Command is a command that does so, or returns more
	// information. {n} is replaced by the namespace, {p} by the pod.
	Advice, Command string
}

// Where the API reports causes.
const (
	seenInEvents    = "events of the owner of the pod (FailedCreate)"
	seenInScheduled = "condition PodScheduled of the pod"
	seenInWaiting   = "a waiting container of the pod"
	seenInEnds      = "a terminated container of the pod"
	seenInPodEvents = "events of the pod"
	seenInPhase     = "the reason of the Failed pod"
	seenInReady     = "condition Ready of the pod"
	seenInMetadata  = "metadata.deletionTimestamp of the pod"
	seenInJob       = "conditions of the Job, reported by ExtendedStatefulSet only"
	seenInFailures  = "status.failures of a ReplicatedStatefulSet"
)

const (
	needsPerson = kstatus.NeedsPerson
	passes      = kstatus.Passes

	describePod = "kubectl -n {n} describe pod {p}"
	describePVC = "kubectl -n {n} describe pvc"
	lastLogs    = "kubectl -n {n} logs {p} --all-containers --previous"
)

// Rows contains all situations. If several rows match, the first one is used.
var Rows = []Row{
	{"a claim of the pod is being deleted", "ClaimBeingDeleted", []string{"is being deleted"}, seenInEvents, notCreated, passes, "wait until the claim is deleted, or check what uses it", describePVC},
	{"the namespace is being deleted", "NamespaceTerminating", []string{"because it is being terminated"}, seenInEvents, notCreated, passes, "use another namespace", "kubectl get namespace {n}"},
	{"a ResourceQuota for pods, claims or resources is exceeded", "QuotaExceeded", []string{"exceeded quota"}, seenInEvents, notCreated, needsPerson, "raise the quota or free some of it", "kubectl -n {n} describe quota"},
	{"a ResourceQuota requires requests or limits", "QuotaExceeded", []string{"failed quota"}, seenInEvents, notCreated, needsPerson, "set the resources that the quota requires in the template", "kubectl -n {n} describe quota"},
	{"a LimitRange does not allow the resources", "LimitRange", []string{" usage per ", " ratio per "}, seenInEvents, notCreated, needsPerson, "change the resources of the template, or the LimitRange", "kubectl -n {n} describe limitrange"},
	{"PodSecurity does not allow the pod", "PodSecurity", []string{"violates PodSecurity"}, seenInEvents, notCreated, needsPerson, "change the securityContext of the template, or the labels of the namespace", "kubectl get namespace {n} --show-labels"},
	{"a ValidatingAdmissionPolicy denies the pod", "AdmissionPolicy", []string{"ValidatingAdmissionPolicy"}, seenInEvents, notCreated, needsPerson, "change the template, or the policy", "kubectl get validatingadmissionpolicybindings"},
	{"an admission webhook denies the pod", "AdmissionWebhook", []string{"denied the request"}, seenInEvents, notCreated, needsPerson, "change the template, or the webhook's policy", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	{"an admission webhook is unreachable", "WebhookUnavailable", []string{"failed calling webhook"}, seenInEvents, notCreated, needsPerson, "repair the webhook, or delete its configuration", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"},
	{"the ServiceAccount is missing", "ServiceAccountMissing", []string{"looking up service account"}, seenInEvents, notCreated, needsPerson, "create it, or name another in the template", "kubectl -n {n} get serviceaccounts"},
	{"the RuntimeClass is missing", "RuntimeClassMissing", []string{"RuntimeClass"}, seenInEvents, notCreated, needsPerson, "create it, or name another in the template", "kubectl get runtimeclasses"},
	{"the PriorityClass is missing", "PriorityClassMissing", []string{"no PriorityClass with name"}, seenInEvents, notCreated, needsPerson, "create it, or name another in the template", "kubectl get priorityclasses"},
	{"the API server rejects the pod as invalid", "Invalid", []string{"is invalid"}, seenInEvents, notCreated, needsPerson, "correct the template", "kubectl -n {n} get events --field-selector reason=FailedCreate"},
	{"the API server rejects the pod for another reason", failedCreate, nil, seenInEvents, notCreated, needsPerson, "change what rejects the pod, or change the template", "kubectl -n {n} get events --field-selector reason=FailedCreate"},

	{"a scheduling gate blocks the pod", SchedulingGated, nil, seenInScheduled, notScheduled, passes, "check which controller owns the gates, for example a queue", "kubectl -n {n} get pod {p} -o jsonpath='{.spec.schedulingGates}'"},
	{"no scheduler handles the pod", "NotScheduled", nil, seenInScheduled, notScheduled, needsPerson, "check schedulerName of the template, and that the scheduler runs", "kubectl -n {n} get pod {p} -o jsonpath='{.spec.schedulerName}'"},
	{"the claim of the pod is missing", Unschedulable, []string{`" not found`}, seenInScheduled, notScheduled, needsPerson, "create the claim, or delete the pod so that its owner recreates both", describePVC},
	{"the volume of a claim is lost", Unschedulable, []string{"non-existent persistentvolume"}, seenInScheduled, notScheduled, needsPerson, "restore the volume; or delete the claim and the pod, which discards the data", describePVC},
	{"the claim of the pod is being deleted", Unschedulable, []string{"is being deleted"}, seenInScheduled, notScheduled, needsPerson, "delete the pod, so that the claim is deleted and recreated", describePVC},
	{"a claim is not bound: its StorageClass is missing, or nothing provisions it", Unschedulable, []string{"unbound immediate PersistentVolumeClaims", "didn't find available persistent volumes"}, seenInScheduled, notScheduled, needsPerson, "check the StorageClass of the claim and its provisioner", describePVC},
	{"no Node has enough cpu, memory or other resources", Unschedulable, []string{"Insufficient"}, seenInScheduled, notScheduled, needsPerson, "add Nodes, or lower the requests of the template", describePod},
	{"each Node has the max number of pods", Unschedulable, []string{"Too many pods"}, seenInScheduled, notScheduled, needsPerson, "add Nodes", describePod},
	{"the volume is on a Node or in a zone where the pod cannot run", Unschedulable, []string{"volume node affinity conflict"}, seenInScheduled, notScheduled, needsPerson, "bring the Node back, or free resources in the zone", describePVC},
	{"no Node satisfies the pod anti-affinity", Unschedulable, []string{"anti-affinity"}, seenInScheduled, notScheduled, needsPerson, "add Nodes, or relax the anti-affinity of the template", describePod},
	{"no Node satisfies the topology spread constraints", Unschedulable, []string{"topology spread constraints"}, seenInScheduled, notScheduled, needsPerson, "add Nodes, or relax the constraints of the template", describePod},
	{"no Node matches the node affinity or selector", Unschedulable, []string{"node affinity/selector", "node selector"}, seenInScheduled, notScheduled, needsPerson, "label a Node, or change the selector of the template", "kubectl get nodes --show-labels"},
	{"all Nodes have taints, or are cordoned", Unschedulable, []string{"taint", "were unschedulable"}, seenInScheduled, notScheduled, needsPerson, "uncordon a Node, remove its taint, or tolerate it in the template", "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"},
	{"the scheduler finds no Node for another reason", Unschedulable, nil, seenInScheduled, notScheduled, needsPerson, "check the events of the pod", describePod},

	{"the image cannot be pulled: it is missing, or its registry refuses access", imagePull, nil, seenInWaiting, notStarted, needsPerson, "check the image name and the pull secrets", describePod},
	{"the name of the image is invalid", invalidImage, nil, seenInWaiting, notStarted, needsPerson, "correct the image name in the template", describePod},
	{"the image is missing on the Node, and its pull policy is Never", neverPull, nil, seenInWaiting, notStarted, needsPerson, "change imagePullPolicy of the template, or load the image", describePod},
	{"a key of a ConfigMap or Secret is missing", configError, []string{"couldn't find key"}, seenInWaiting, notStarted, needsPerson, "add the key, or correct the template", "kubectl -n {n} get configmaps,secrets"},
	{"a ConfigMap is missing", configError, []string{"configmap "}, seenInWaiting, notStarted, needsPerson, "create it, or name another in the template", "kubectl -n {n} get configmaps"},
	{"a Secret is missing", configError, []string{"secret "}, seenInWaiting, notStarted, needsPerson, "create it, or name another in the template", "kubectl -n {n} get secrets"},
	{"the image runs as root, and the pod does not allow it", configError, []string{"run as root", "non-root"}, seenInWaiting, notStarted, needsPerson, "set runAsUser in the template, or use another image", describePod},
	{"a container cannot be configured for another reason", configError, nil, seenInWaiting, notStarted, needsPerson, "correct the template", describePod},
	{"a container cannot be created", createError, nil, seenInWaiting, notStarted, needsPerson, "correct the template", describePod},
	{"the program of a container is missing or not executable", CrashLoop, []string{"StartError", "ContainerCannotRun"}, seenInEnds, notStarted, needsPerson, "correct the command in the template, or the image", describePod},
	{"a container needs more memory than its limit", CrashLoop, []string{"OOMKilled"}, seenInEnds, notStarted, needsPerson, "raise its memory limit in the template", describePod},
	{"an init container fails repeatedly", CrashLoop, []string{"init container"}, seenInEnds, notStarted, needsPerson, "check its output", lastLogs},
	{"a container exits repeatedly, or its liveness probe fails", CrashLoop, nil, seenInEnds, notStarted, needsPerson, "check its output", lastLogs},
	{"a volume cannot be mounted, for example because of a missing ConfigMap or Secret", "FailedMount", nil, seenInPodEvents, notStarted, needsPerson, "create the missing object, or correct the volumes of the template", describePod},
	{"a volume cannot be attached to the Node", "FailedAttachVolume", nil, seenInPodEvents, notStarted, needsPerson, "check which Node still has the volume attached", "kubectl get volumeattachments"},
	{"the sandbox of the pod cannot be created because of the network or the RuntimeClass handler", "FailedCreatePodSandBox", nil, seenInPodEvents, notStarted, needsPerson, "repair the network plugin or the runtime of the Node", describePod},
	{"the commands that start a member fail repeatedly", StartFails, nil, seenInFailures, notStarted, needsPerson, "check the output of the program, and correct the command or the configuration", "kubectl -n {n} logs {p} --all-containers"},

	{"the kubelet does not allow a sysctl", "SysctlForbidden", nil, seenInPhase, notKept, needsPerson, "remove the sysctl from the template, or allow it on the Node (kubelet option allowedUnsafeSysctls)", describePod},
	{"a plugin or manager of the kubelet rejects the pod", "UnexpectedAdmissionError", nil, seenInPhase, notKept, needsPerson, "check which resource the Node lacks, for example a device", describePod},
	{"the Node has no room when the pod arrives", outOf, nil, seenInPhase, notKept, passes, "the pod is recreated; if this repeats, lower the requests or add Nodes", describePod},
	{"the Node no longer matches the pod", "NodeAffinity", nil, seenInPhase, notKept, passes, "label the Node again, or change the selector of the template", "kubectl get nodes --show-labels"},
	{"the Node ran out of memory, disk or process IDs, or the pod exceeded its ephemeral storage limit", "Evicted", nil, seenInPhase, notKept, passes, "free the resource on the Node, or raise the pod's limit of it", describePod},
	{"the Node is shutting down", "Terminated", nil, seenInPhase, notKept, passes, "wait until the Node is back", "kubectl get nodes"},
	{"the pod arrived while the Node was shutting down", "NodeShutdown", nil, seenInPhase, notKept, passes, "wait until the Node is back", "kubectl get nodes"},
	{"the pod was preempted by a pod of higher priority", "Preempting", nil, seenInPhase, notKept, passes, "add Nodes, or set a priorityClassName in the template", describePod},
	{"the pod ran longer than activeDeadlineSeconds", "DeadlineExceeded", nil, seenInPhase, notKept, needsPerson, "remove activeDeadlineSeconds from the template", describePod},
	{"the pod failed for another reason", ended, nil, seenInPhase, notKept, needsPerson, "check the message of the pod", describePod},

	{"a readiness gate of the pod is not True", running, []string{"readiness gate"}, seenInReady, notReady, passes, "check which condition is missing", "kubectl -n {n} get pod {p} -o wide"},
	{"the readiness probe does not succeed", running, nil, seenInReady, notReady, passes, "check the result of the probe", describePod},

	{"a finalizer of another client blocks the deletion of the pod", Terminating, []string{"finalizer"}, seenInMetadata, notDeleted, needsPerson, "check which client set the finalizer", "kubectl -n {n} get pod {p} -o jsonpath='{.metadata.finalizers}'"},
	{"the kubelet has not reported that the pod ended, for example because the Node is unreachable", Terminating, nil, seenInMetadata, notDeleted, needsPerson, "check whether its Node is Ready", "kubectl get nodes"},

	{"a queue suspends a Job", jobSuspended, nil, seenInJob, notDone, passes, "check why the Job is not admitted", "kubectl -n {n} get workloads"},
	{"another client, a webhook or a policy suspends a Job", jobSuspended, nil, seenInJob, notDone, needsPerson, "resume it", `kubectl -n {n} patch job {p} --type=merge -p '{"spec":{"suspend":false}}'`},
	{"a Job failed", jobFailed, nil, seenInJob, notDone, needsPerson, "check the output of its pods", "kubectl -n {n} logs job/{p}"},
}

// row returns the row of the cause in the table; nil if there is none.
func (c Cause) row() *Row {
	for i := range Rows {
		if r := &Rows[i]; r.covers(c) {
			return r
		}
	}
	return nil
}

// covers reports whether the row is the situation of a cause.
func (r *Row) covers(c Cause) bool {
	same := c.Word == r.Word || (r.Word == outOf && strings.HasPrefix(c.Word, outOf))
	return same && r.says(c.Detail)
}

func (r *Row) says(text string) bool {
	for _, words := range r.Says {
		if strings.Contains(text, words) {
			return true
		}
	}
	return len(r.Says) == 0
}
