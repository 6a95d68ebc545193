package v1

// Prefix begins the names of everything that the operator puts on pods. A
// selector cannot use such labels.
const Prefix = "apps.statefulsingleton.com/"

// Names on pods.
const (
	// ReadinessGate is the pod condition that is True from the grant on. Until
	// then the pod is not Ready, whatever its containers say.
	ReadinessGate = Prefix + "singleton-ready"
	// LabelManaged is "true" on every pod that has the gate.
	LabelManaged = Prefix + "managed"
	// LabelSingleton holds the name of the StatefulSingleton of the pod, so that
	// its pods keep away from each other and from no others.
	LabelSingleton = Prefix + "singleton"
	// AnnotationManaged is "true" on every pod that has the gate.
	AnnotationManaged = Prefix + "statefulsingleton-managed"
	// AnnotationSingletonUID is the UID of the StatefulSingleton that a pod was
	// created under. Only the pods of this very object are deleted because a handover
	// takes too long. The guard lets nobody change it.
	AnnotationSingletonUID = Prefix + "singleton-uid"
	// AnnotationShortenGrace set to "true" by the author of a pod lets a
	// StatefulSingleton with respectPodGracePeriod false shorten the pod's grace
	// period.
	AnnotationShortenGrace = Prefix + "shorten-grace-period"
	// AnnotationGrant lets a pod start its program: the pod's own UID, a space
	// and the holder's epoch. Any other text is no grant. Only who may update
	// the status of StatefulSingletons may change it.
	AnnotationGrant = Prefix + "grant"
	// AnnotationReminder is the epoch of the grant, written some seconds after it.
	// A kubelet that is renewing the pod's volumes when the grant comes may miss
	// it, and looks again within 60 to 90 seconds, or when the pod changes.
	AnnotationReminder = Prefix + "grant-reminder"
	// AnnotationDetached is on a pod that the operator took from its ReplicaSet, so that
	// this makes another one before the pod goes: the pod's own UID, a space and the name
	// of the ReplicaSet. Its controller is the Deployment meanwhile. Any other text means
	// nothing.
	AnnotationDetached = Prefix + "detached"
	// FinalizerPod keeps a pod that may be running a program visible until its
	// containers have been seen stopped. Whoever takes it off takes the word of
	// the kubelet away from the operator.
	FinalizerPod = Prefix + "until-stopped"
)

// Names on StatefulSingletons.
const (
	// FinalizerSingleton keeps a deleted StatefulSingleton until no pod waits.
	FinalizerSingleton = Prefix + "until-released"
	// AnnotationReleaseNow set to "true" on a StatefulSingleton that is being
	// deleted starts all its waiting pods at once, together, and takes off all
	// finalizers.
	AnnotationReleaseNow = Prefix + "release-now"
)

// True is the value of labels and annotations that are set or absent.
const True = "true"

// What is added to a pod.
const (
	// VolumeSignal is the downwardAPI volume with the grant.
	VolumeSignal = "signal-volume"
	// VolumeGate is the emptyDir that the gate is copied into.
	VolumeGate = "gate-volume"
	// VolumeScripts is the emptyDir that the script is copied into, in Script mode.
	VolumeScripts = "wrapper-scripts"

	// PathSignal is where VolumeSignal is mounted.
	PathSignal = "/var/run/signal"
	// PathGate is where VolumeGate is mounted.
	PathGate = "/var/run/gate"
	// PathScripts is where VolumeScripts is mounted.
	PathScripts = "/opt/wrapper"

	// FileSignal in PathSignal holds the grant; it is empty without one.
	FileSignal = "start-signal"
	// FilePodUID in PathSignal holds the UID of the pod.
	FilePodUID = "pod-uid"

	// GateInImage is the gate in the operator's image.
	GateInImage = "/gate"
	// GateInPod is the gate in a pod, where the program's containers find it.
	GateInPod = PathGate + "/gate"
	// ScriptInPod is the script that holds a program back in Script mode.
	ScriptInPod = PathScripts + "/" + FileScript

	// ContainerInstall copies the gate into VolumeGate, or VolumeScripts.
	ContainerInstall = "gate-install"
	// ContainerImagePrefix and a number name the containers that bring the
	// pod's images to its node before it waits, in Init mode.
	ContainerImagePrefix = "gate-image-"
	// ContainerWait is the init container that waits, in Init mode.
	ContainerWait = "gate-wait"
	// ContainerSidecar says where the pod stands, on request and in Script mode.
	ContainerSidecar = "status-sidecar"

	// EnvOriginalEntrypoint tells a program that is held back in its container
	// what its container was: {"command":...,"args":...,"image":...}.
	EnvOriginalEntrypoint = "ORIGINAL_ENTRYPOINT"
)

// The ConfigMap of each namespace that has a StatefulSingleton. It is for people to
// read: no pod runs what is in it.
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

// Condition types of a StatefulSingleton. The first three are always there, the
// others only while they are True.
const (
	// ConditionAvailable is True while the active pod is Ready, and no other may be
	// running the program.
	ConditionAvailable = "Available"
	// ConditionProgressing is True during a handover; it names the container
	// that is waited for.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when there is a problem.
	ConditionDegraded = "Degraded"
	// ConditionUnmanagedPod is True while a pod that matches may be running its
	// program without the gate. No other pod starts until it is gone.
	ConditionUnmanagedPod = "UnmanagedPod"
	// ConditionSelectorConflict is True while a pod could match the selector of
	// another StatefulSingleton too. The younger of the two starts no pod.
	ConditionSelectorConflict = "SelectorConflict"
	// ConditionRolloutHeld is True while a rollout cannot finish, because it
	// waits for pods to be Ready that wait for their turn.
	ConditionRolloutHeld = "RolloutHeld"
	// ConditionGuardMissing is True while the API server does not refuse pods
	// that came without the gate: it is older than 1.30, or the policy could not
	// be installed.
	ConditionGuardMissing = "GuardMissing"
	// ConditionReady is True while the object is as its spec says: it serves, and
	// nothing is left to do.
	ConditionReady = "Ready"
	// ConditionReconciling is True while it comes to be so by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while it does not before a person does something; it
	// says what.
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
	// ReasonWaitingForPod: no pod has come as far as its gate yet.
	ReasonWaitingForPod = "WaitingForPod"
	// ReasonReleasing: the object is deleted, and its pods are let go one after
	// another.
	ReasonReleasing = "ReleasingPods"

	// ReasonHealthy: no problems detected.
	ReasonHealthy = "Healthy"
	// ReasonInvalidSpec: the spec slipped past admission and cannot be served.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonTooMany: the namespace has more than 100 of these objects.
	ReasonTooMany = "TooManySingletons"
	// ReasonTimeout: a handover takes longer than maxTransitionTime.
	ReasonTimeout = "TransitionTimeout"
	// ReasonNodeLost: the pod that is waited for is on a Node that cannot be
	// reached, and only a person can say that its machine is off.
	ReasonNodeLost = "NodeUnreachable"
	// ReasonScriptFailing: the script of Script mode does not start in the pod's
	// image.
	ReasonScriptFailing = "ScriptFailing"
	// ReasonWriteRefused: the API server refuses a write.
	ReasonWriteRefused = "WriteRefused"
	// ReasonSeveralRunning, of Available and Degraded: more than one pod may be
	// running the program now. That takes pods without the gate, or such as a
	// person has let go.
	ReasonSeveralRunning = "SeveralPodsRunning"
	// ReasonContainersMissing: pods lack a container that spec.containers names, and
	// wait as a whole.
	ReasonContainersMissing = "ContainersMissing"
	// ReasonPodFailing: the pod whose turn it is does not run: it is not created, finds no
	// Node, cannot start its program, or that ends again and again. A pod that has its turn
	// keeps it.
	ReasonPodFailing = "PodFailing"

	// ReasonNotReplacedFirst: spec.onEviction is ReplaceFirst, and evictions of the active
	// pod are not refused, or not by the operator.
	ReasonNotReplacedFirst = "NotReplacedFirst"

	// ReasonPodWithoutGate: see ConditionUnmanagedPod.
	ReasonPodWithoutGate = "PodWithoutGate"
	// ReasonSelectorsOverlap: see ConditionSelectorConflict.
	ReasonSelectorsOverlap = "SelectorsOverlap"
	// ReasonOwnerUnknown: a pod waits for another to stop, and the operator does not
	// know its owner, or whether the pod is to replace the other.
	ReasonOwnerUnknown = "OwnerUnknown"
	// ReasonOwnersCompete: onTimeout deleted a pod of an unknown owner, which was created
	// again: two revisions or owners want to run at the same time.
	ReasonOwnersCompete = "OwnersCompete"
	// ReasonStandbysNotReady: standbys are never Ready, and the rollout wants
	// more Ready pods than one.
	ReasonStandbysNotReady = "StandbysNotReady"
	// ReasonNoPolicyAPI: the API server has no ValidatingAdmissionPolicy.
	ReasonNoPolicyAPI = "NoPolicyAPI"
	// ReasonPolicyNotInstalled: the operator may not install its policy.
	ReasonPolicyNotInstalled = "PolicyNotInstalled"
)

// Reasons of events.
const (
	// EventPodStarted: a pod was granted the start, and none held it before.
	EventPodStarted = "PodStarted"
	// EventPodTransition: a pod was granted the start after another had stopped.
	EventPodTransition = "PodTransition"
	// EventTransitionTimeout: a handover takes longer than maxTransitionTime.
	EventTransitionTimeout = "TransitionTimeout"
	// EventPodDeleted: the operator deleted a pod to let a handover go on; the
	// note says why.
	EventPodDeleted = "PodDeleted"
	// EventPodReleased: a pod was let go because its StatefulSingleton was
	// deleted.
	EventPodReleased = "PodReleased"
	// EventPodDetached: a pod on a cordoned Node was taken from its ReplicaSet, which
	// makes another one in its place.
	EventPodDetached = "PodDetached"
	// EventPodReturned: such a pod is its ReplicaSet's again.
	EventPodReturned = "PodReturned"
	// EventWriteRefused: the API server refused a write; it is tried again.
	EventWriteRefused = "WriteRefused"
	// EventWriteUndone: the API server accepted a write on a child, and an admission webhook or
	// policy changed it back; it is tried again within 10 minutes.
	EventWriteUndone = "WriteUndone"
	// EventSeveralRunning: more than one pod may be running the program now.
	EventSeveralRunning = "SeveralPodsRunning"
	// EventUnmanagedPod: a pod may be running the program without the gate.
	EventUnmanagedPod = "UnmanagedPod"
)
