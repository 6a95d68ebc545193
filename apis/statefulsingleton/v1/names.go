package v1

// Prefix is the prefix of all names that the operator sets on pods. A selector cannot use such
// labels.
const Prefix = "apps.statefulsingleton.com/"

// Names on pods.
const (
	// ReadinessGate is the pod condition that becomes True with the grant. Until then the pod is
	// not Ready, independent of its containers.
	ReadinessGate = Prefix + "singleton-ready"
	// LabelManaged is "true" on every pod that has the gate.
	LabelManaged = Prefix + "managed"
	// LabelSingleton is the name of the StatefulSingleton of the pod, used for the anti-affinity of
	// its pods.
	LabelSingleton = Prefix + "singleton"
	// AnnotationManaged is "true" on every pod that has the gate.
	AnnotationManaged = Prefix + "statefulsingleton-managed"
	// AnnotationSingletonUID is the UID of the StatefulSingleton under which a pod was created.
	// Only pods with the UID of the present object are deleted if a handover takes too long. The
	// guard refuses changes of it.
	AnnotationSingletonUID = Prefix + "singleton-uid"
	// AnnotationShortenGrace set to "true" by the author of a pod allows a StatefulSingleton with
	// respectPodGracePeriod false to shorten the pod's grace period.
	AnnotationShortenGrace = Prefix + "shorten-grace-period"
	// AnnotationGrant allows a pod to start its program: the pod's own UID, a space and the
	// holder's epoch. Any other text is not a grant. Only users who may update the status of
	// StatefulSingletons may change it.
	AnnotationGrant = Prefix + "grant"
	// AnnotationReminder is the epoch of the grant, written some seconds after it. A kubelet that
	// is updating the pod's volumes when it receives the grant may miss it, and checks again within
	// 60 to 90 seconds, or when the pod changes.
	AnnotationReminder = Prefix + "grant-reminder"
	// AnnotationCrashLooped is on a pod whose program ended again and again, so that another pod was
	// named to take over: the pod's own UID. Any other text is not a mark.
	AnnotationCrashLooped = Prefix + "crash-looped"
	// AnnotationDetached is on a pod that the operator removed from its ReplicaSet, so that the
	// ReplicaSet creates another one before the pod is deleted: the pod's own UID, a space and the
	// name of the ReplicaSet. Its controller is the Deployment meanwhile. Any other text is
	// ignored.
	AnnotationDetached = Prefix + "detached"
	// AnnotationNext on a Lease is the identity of the pod to which the agent of the holder hands the
	// Lease when its program has ended. Only the operator sets it.
	AnnotationNext = Prefix + "next"
	// FinalizerPod keeps a pod that may be running a program until its containers have been
	// observed to be stopped. After a manual removal the operator no longer sees the kubelet's
	// reports about the pod.
	FinalizerPod = Prefix + "until-stopped"
)

// Names on StatefulSingletons.
const (
	// FinalizerSingleton keeps a deleted StatefulSingleton until no pod waits.
	FinalizerSingleton = Prefix + "until-released"
	// AnnotationReleaseNow set to "true" on a StatefulSingleton that is being deleted starts all
	// its waiting pods at the same time, and removes all finalizers.
	AnnotationReleaseNow = Prefix + "release-now"
)

// True is the value of labels and annotations that are set or absent.
const True = "true"

// Names that are added to a pod.
const (
	// VolumeSignal is the downwardAPI volume with the grant.
	VolumeSignal = "signal-volume"
	// VolumeGate is an image volume with the gate, or the emptyDir into which it is copied.
	VolumeGate = "gate-volume"
	// VolumeScripts is the emptyDir into which the script is copied, in Script mode.
	VolumeScripts = "wrapper-scripts"

	// VolumeFencing has the identity of the pod and its credentials for the Lease.
	VolumeFencing = "fencing-volume"

	// PathFencing is the mount path of VolumeFencing.
	PathFencing = "/var/run/fencing"
	// PathSignal is the mount path of VolumeSignal.
	PathSignal = "/var/run/signal"
	// PathGate is the mount path of VolumeGate.
	PathGate = "/var/run/gate"
	// PathScripts is the mount path of VolumeScripts.
	PathScripts = "/opt/wrapper"

	// FileSignal in PathSignal contains the grant; it is empty without one.
	FileSignal = "start-signal"
	// FilePodUID in PathSignal contains the UID of the pod.
	FilePodUID = "pod-uid"

	// GateInImage is the path of the gate in the operator's image.
	GateInImage = "/gate"
	// GateInPod is the path of the gate in the program's containers.
	GateInPod = PathGate + "/gate"
	// AgentInImage is the path of the agent in the operator's image.
	AgentInImage = "/agent"
	// AgentInPod is the path of the agent in the program's container, with fencing by a Lease.
	AgentInPod = PathGate + "/agent"
	// ScriptInPod is the path of the script that blocks a program in Script mode.
	ScriptInPod = PathScripts + "/" + FileScript

	// ContainerInstall copies the gate to VolumeGate, or the script to VolumeScripts. It is not added if
	// VolumeGate is an image volume.
	ContainerInstall = "gate-install"
	// ContainerImagePrefix with a number is the name of the containers that pull the pod's images
	// to its node before it waits, in Init mode.
	ContainerImagePrefix = "gate-image-"
	// ContainerWait is the init container that waits, in Init mode.
	ContainerWait = "gate-wait"
	// ContainerSidecar prints the state of the pod. It is added on request and in Script mode.
	ContainerSidecar = "status-sidecar"

	// EnvOriginalEntrypoint has the original container of a program that is blocked in its
	// container: {"command":...,"args":...,"image":...}.
	EnvOriginalEntrypoint = "ORIGINAL_ENTRYPOINT"
)

// The ConfigMap in each namespace with a StatefulSingleton. It is documentation for users: no pod
// runs its content.
const (
	// ConfigMapWrapper is its name.
	ConfigMapWrapper = "statefulsingleton-wrapper"
	// FileScript is its key.
	FileScript = "entrypoint-wrapper.sh"

	// LabelPartOf and LabelManagedBy are its labels.
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	PartOf         = "statefulsingleton-operator"
	ManagedBy      = "statefulsingleton-controller"
)

// Condition types of a StatefulSingleton. All are always present.
const (
	// ConditionAvailable is True while the active pod is Ready, and no other may be running the
	// program.
	ConditionAvailable = "Available"
	// ConditionProgressing is True during a handover. The message names the container that has not
	// stopped yet.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True if there is a problem.
	ConditionDegraded = "Degraded"
	// ConditionUnmanagedPod is True while a pod that matches may be running its program without the
	// gate. No other pod starts until it is deleted.
	ConditionUnmanagedPod = "UnmanagedPod"
	// ConditionSelectorConflict is True while a pod could match the selector of another
	// StatefulSingleton too. The younger of the two starts no pods.
	ConditionSelectorConflict = "SelectorConflict"
	// ConditionRolloutHeld is True while a rollout is blocked, because it waits for waiting pods to
	// become Ready.
	ConditionRolloutHeld = "RolloutHeld"
	// ConditionGuardMissing is True while the API server does not refuse pods without the gate: it
	// is older than 1.30, or the policy could not be installed.
	ConditionGuardMissing = "GuardMissing"
	// ConditionReady is True while the object matches its spec: it serves, and no operation is in
	// progress.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator is bringing the object to its spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the object cannot reach its spec without manual intervention.
	// The message has instructions.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions.
const (
	// ReasonActive: the active pod is Ready.
	ReasonActive = "ActivePodReady"
	// ReasonNotReady: the active pod is not Ready.
	ReasonNotReady = "ActivePodNotReady"
	// ReasonNoPods: no pod matches.
	ReasonNoPods = "NoPods"
	// ReasonNoneActive: pods wait, and none may run yet.
	ReasonNoneActive = "NoActivePod"

	// ReasonSteady: no operation in progress.
	ReasonSteady = "Steady"
	// ReasonWaitingForStop: a pod has not stopped yet, and others wait.
	ReasonWaitingForStop = "WaitingForStop"
	// ReasonWaitingForPod: no pod has reached its gate yet.
	ReasonWaitingForPod = "WaitingForPod"
	// ReasonReleasing: the object is deleted, and its pods are released one after another.
	ReasonReleasing = "ReleasingPods"

	// ReasonHealthy: no problems detected.
	ReasonHealthy = "Healthy"
	// ReasonInvalidSpec: the spec passed admission but is invalid.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonTooMany: the namespace has more than 100 of these objects.
	ReasonTooMany = "TooManySingletons"
	// ReasonTimeout: a handover takes longer than maxTransitionTime.
	ReasonTimeout = "TransitionTimeout"
	// ReasonFencingNotPermitted: the operator may not read or write Leases, Roles or RoleBindings. The
	// message has the command that permits it.
	ReasonFencingNotPermitted = "FencingNotPermitted"
	// ReasonNodeLost: the handover waits for a pod on an unreachable Node, and only an
	// administrator can confirm that its machine is off.
	ReasonNodeLost = "NodeUnreachable"
	// ReasonScriptFailing: the script of Script mode does not start in the pod's
	// image.
	ReasonScriptFailing = "ScriptFailing"
	// ReasonWriteRefused: the API server refuses a write.
	ReasonWriteRefused = "WriteRefused"
	// ReasonSeveralRunning, of Available and Degraded: more than one pod may be running the program
	// now. This requires pods without the gate, or pods that were released manually.
	ReasonSeveralRunning = "SeveralPodsRunning"
	// ReasonContainersMissing: pods lack a container of spec.containers, and wait as a whole.
	ReasonContainersMissing = "ContainersMissing"
	// ReasonPodFailing: the holder of the grant does not run: it is not created, cannot be
	// scheduled, cannot start its program, or its program ends repeatedly. A pod keeps its grant.
	ReasonPodFailing = "PodFailing"

	// ReasonNotReplacedFirst: spec.onEviction is ReplaceFirst, but evictions of the active pod are
	// not refused, or not by the operator.
	ReasonNotReplacedFirst = "NotReplacedFirst"

	// ReasonPodWithoutGate: see ConditionUnmanagedPod.
	ReasonPodWithoutGate = "PodWithoutGate"
	// ReasonSelectorsOverlap: see ConditionSelectorConflict.
	ReasonSelectorsOverlap = "SelectorsOverlap"
	// ReasonOwnerUnknown: a pod waits for another to stop, and the operator does not know its
	// owner, or whether the pod replaces the other.
	ReasonOwnerUnknown = "OwnerUnknown"
	// ReasonOwnersCompete: onTimeout deleted a pod of an unknown owner, which was recreated: two
	// revisions or owners are competing.
	ReasonOwnersCompete = "OwnersCompete"
	// ReasonCrashLooped: a pod of the newest revision does not replace the running one, because its
	// program was in a crash loop, and spec.onCrashLoop is Handover.
	ReasonCrashLooped = "CrashLooped"
	// ReasonStandbysNotReady: standbys are never Ready, and the rollout requires more than one
	// Ready pod.
	ReasonStandbysNotReady = "StandbysNotReady"
	// ReasonNoPolicyAPI: the API server has no ValidatingAdmissionPolicy.
	ReasonNoPolicyAPI = "NoPolicyAPI"
	// ReasonPolicyNotInstalled: the operator may not install its policy.
	ReasonPolicyNotInstalled = "PolicyNotInstalled"
)

// Reasons of events.
const (
	// EventPodStarted: a pod got the grant, and no other had it before.
	EventPodStarted = "PodStarted"
	// EventPodTransition: a pod got the grant after another had stopped.
	EventPodTransition = "PodTransition"
	// EventTransitionTimeout: a handover takes longer than maxTransitionTime.
	EventTransitionTimeout = "TransitionTimeout"
	// EventPodDeleted: the operator deleted a pod to continue a handover. The note has the reason.
	EventPodDeleted = "PodDeleted"
	// EventPodReleased: a pod was released because its StatefulSingleton was deleted.
	EventPodReleased = "PodReleased"
	// EventPodDetached: a pod on a cordoned Node was removed from its ReplicaSet, which creates
	// another one in its place.
	EventPodDetached = "PodDetached"
	// EventPodReturned: such a pod was returned to its ReplicaSet.
	EventPodReturned = "PodReturned"
	// EventWriteRefused: the API server refused a write. It is retried.
	EventWriteRefused = "WriteRefused"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy reverted it. It is retried within 10 minutes.
	EventWriteUndone = "WriteUndone"
	// EventSeveralRunning: more than one pod may be running the program now.
	EventSeveralRunning = "SeveralPodsRunning"
	// EventUnmanagedPod: a pod may be running the program without the gate.
	EventUnmanagedPod = "UnmanagedPod"
)
