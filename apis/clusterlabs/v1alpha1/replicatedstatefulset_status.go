package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is the state of the set in one word.
// +kubebuilder:validation:Enum="";Creating;Running;Paused;Failed
type Phase string

const (
	// PhaseNone: the operator has not observed the object yet.
	PhaseNone Phase = ""
	// PhaseCreating: no member has been started yet.
	PhaseCreating Phase = "Creating"
	// PhaseRunning: the operator keeps the members running.
	PhaseRunning Phase = "Running"
	// PhasePaused: the operator does nothing; reason explains why.
	PhasePaused Phase = "Paused"
	// PhaseFailed: manual intervention is required; reason has the problem. The phase ends when the
	// problem is resolved.
	PhaseFailed Phase = "Failed"
)

// ReplicatedStatefulSetStatus is the observed state. The operator depends on epoch, sequences,
// grants and commands: it writes them before the actions that they record.
type ReplicatedStatefulSetStatus struct {
	// Problem is why the other fields are empty: the stored status does not decode. "" if it does.
	// It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec to which this status applies.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is Creating, Running, Paused or Failed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase Phase `json:"phase,omitempty"`
	// Reason explains the phase in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reason"
	Reason string `json:"reason,omitempty"`
	// ControlPaused is true while the operator is paused by spec.paused.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Paused"
	ControlPaused bool `json:"controlPaused,omitempty"`
	// Replicas is the number of pods that run.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of members whose application runs, as primary or secondary, in a
	// pod that is Ready.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready replicas"
	ReadyReplicas int32 `json:"readyReplicas"`
	// AvailableReplicas is the number of members that have been Ready in their role for
	// spec.minReadySeconds.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Available replicas"
	AvailableReplicas int32 `json:"availableReplicas"`
	// Primaries is the number of members that are primary.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Primaries"
	Primaries int32 `json:"primaries"`
	// PrimariesWanted is the number of members that should be primary now, derived from
	// spec.primaries.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Primaries wanted"
	PrimariesWanted int32 `json:"primariesWanted"`
	// RestoreReplicas is the last number of members that existed at the same time. It is kept while
	// replicas is 0: the set must be restarted with at least that many, because any of them may
	// have the newest copy.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas to come back with"
	RestoreReplicas int32 `json:"restoreReplicas,omitempty"`
	// Selector selects the pods, in the format of /scale.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`
	// ServiceName is the headless Service of all members.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Service",xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"}
	ServiceName string `json:"serviceName,omitempty"`
	// Members are the names of the pods by state.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podStatuses"}
	Members Members `json:"members,omitempty"`
	// Epoch counts the starts of a first primary, by a seed or after all others had stopped, from
	// 1. It is incremented before that start, to distinguish earlier reports of members from later
	// ones.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Epoch"
	Epoch int64 `json:"epoch,omitempty"`
	// Sequences are the last reported versions of the members' copies. They are kept when a pod is
	// deleted, because its data is kept.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Sequences",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Sequences []Sequence `json:"sequences,omitempty"`
	// Grants are the containers in which the application may be primary: at least those in which it
	// is. Each is recorded before a command that may make it primary is sent. It is removed only
	// when it is certain that the application is not primary any more. The operator needs them; do
	// not edit them.
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	// +listType=map
	// +listMapKey=uid
	// +listMapKey=containerID
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Grants",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Grants []Grant `json:"grants,omitempty"`
	// Commands are commands that were started, and whose end has not been observed. Each is
	// recorded before it is sent, so that a restarted operator knows about it.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=uid
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Running commands",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Commands []RunningCommand `json:"commands,omitempty"`
	// Failures count the recent failed starts and stops of members.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Failures",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Failures []Failure `json:"failures,omitempty"`
	// Unanswered are running members whose status command has not responded for longer than 30
	// seconds. They are kept here until it responds, even if the operator restarts.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Without an answer",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Unanswered []Unanswered `json:"unanswered,omitempty"`
	// Maintenance are the members of spec.maintenance, with their state. It is written before it
	// takes effect. The operator needs it; do not edit it.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Maintenance"
	Maintenance []MemberMaintenance `json:"maintenance,omitempty"`
	// Memberships are the members that the application may know, if there is a command leave. A
	// member is recorded here before it is started. The operator needs it; do not edit it.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Memberships",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Memberships []Membership `json:"memberships,omitempty"`
	// Orders are the states of the orders in spec.switchoverTo and spec.seedFrom, the newest first:
	// the last 16 of each. An order is recorded here before it is executed, and a recorded order is
	// not executed again. The operator needs it; do not edit it.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=order
	// +listMapKey=id
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Orders"
	Orders []OrderStatus `json:"orders,omitempty"`
	// Agent is the agent of spec.application in the pods. It is written before the pods are created.
	// The operator needs it; do not edit it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Agent"
	Agent *AgentStatus `json:"agent,omitempty"`
	// Decisions are the last decisions of the operator about this object, the newest last: at most 20,
	// and 4 KiB of JSON. They are written only together with another change of the status. Events
	// have more detail, but expire after an hour.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last decisions",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Decisions []Decision `json:"decisions,omitempty"`
	// Conditions are Available, Progressing, Degraded, Seeded, DataLossRisk, Paused,
	// Draining, Maintenance, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Decision is a decision of the operator. Decisions with the same reason and message are one entry.
type Decision struct {
	// Time of the decision, or of the last one if it was repeated.
	Time metav1.Time `json:"time"`
	// Reason is that of the event.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// Message is the first 128 bytes of the text of the event.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Message string `json:"message,omitempty"`
	// Warning is true if the event is a warning.
	// +optional
	Warning bool `json:"warning,omitempty"`
	// Count is how often the decision was made. It is absent for a single one.
	// +optional
	Count int32 `json:"count,omitempty"`
}

// Members are the names of the pods by state, each list sorted by ordinal.
type Members struct {
	// Ready are pods that run, independent of the state of the application.
	// +optional
	// +listType=atomic
	Ready []string `json:"ready,omitempty"`
	// Unready are members whose pod does not run.
	// +optional
	// +listType=atomic
	Unready []string `json:"unready,omitempty"`
	// Primary are members that run as primary.
	// +optional
	// +listType=atomic
	Primary []string `json:"primary,omitempty"`
	// Secondary are members that run as secondary.
	// +optional
	// +listType=atomic
	Secondary []string `json:"secondary,omitempty"`
	// Failed are members whose pod runs but which have failed: their status command reported it, or
	// a start did not succeed.
	// +optional
	// +listType=atomic
	Failed []string `json:"failed,omitempty"`
}

// Sequence is the version of a member's copy.
type Sequence struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// Sequence is the output of the command sequence: an unsigned 64-bit integer in decimal.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[0-9]+$`
	Sequence string `json:"sequence"`
	// Epoch is the value of status.epoch when it was read.
	// +optional
	Epoch int64 `json:"epoch"`
	// Time at which it was read.
	Time metav1.Time `json:"time"`
}

// Grant allows the application of one container to be primary.
type Grant struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// UID of the pod.
	UID types.UID `json:"uid"`
	// ContainerID of the container. The grant does not apply to any other container.
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID"`
	// Epoch is the value of status.epoch when the grant was given.
	// +optional
	Epoch int64 `json:"epoch"`
	// Since is when the grant was given.
	Since metav1.MicroTime `json:"since"`
	// BeginWithin is the max time after that until the start begins. It is longer than 5s, the
	// default, if the API server was slow.
	// +optional
	BeginWithin *metav1.Duration `json:"beginWithin,omitempty"`
	// Confirmed is true after the member has been observed running as primary.
	// +optional
	Confirmed bool `json:"confirmed,omitempty"`
	// LeaseEpoch is the number of the assignment of the member's Lease with which the grant is used.
	// It is 0 if the pod has no Lease.
	// +optional
	LeaseEpoch int64 `json:"leaseEpoch,omitempty"`
	// LeaseRenewed is true if process 1 of the member has renewed the Lease in this assignment. If
	// the Lease expires, the container has ended.
	// +optional
	LeaseRenewed bool `json:"leaseRenewed,omitempty"`
}

// RunningCommand is a command that was started and whose end has not been observed.
type RunningCommand struct {
	// Pod in which it runs.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// UID of the pod. The command does not run in another pod of that name.
	UID types.UID `json:"uid"`
	// ContainerID of the container. The command does not run in any other container.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID,omitempty"`
	// RestartCount of the container when the command was started.
	// +optional
	RestartCount int32 `json:"restartCount"`
	// Name of the command, as in spec.pod.commands.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// StartedAt is when the operator sent it.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// Timeout of the command.
	Timeout metav1.Duration `json:"timeout"`
	// BeginWithin is the max time after startedAt until it begins. It is longer than 5s, the
	// default, if the API server was slow.
	// +optional
	BeginWithin *metav1.Duration `json:"beginWithin,omitempty"`
}

// Failure counts the failed starts and stops of a member.
type Failure struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// UID of the pod in which it failed last. A failure does not count against another pod of that
	// name, unless a seed, primary or promote exited with 0 without making the member primary.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// ContainerID of the container in which it failed last.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID,omitempty"`
	// Count of failed starts and stops, each within failureWindow of the previous one.
	Count int32 `json:"count"`
	// Last is the time of the last failure.
	Last metav1.Time `json:"last"`
	// Command that failed last, as in spec.pod.commands.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Command string `json:"command,omitempty"`
	// Code is the exit code of the last failure. 0 means that the command exited with 0, but status
	// did not confirm it.
	// +optional
	Code int32 `json:"code,omitempty"`
	// Generation of the spec at the last failure. After exit codes 2 to 5 the member is not started
	// again until the spec or its pod changes. After exit code 6 no member of the set is started
	// until the spec changes.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Unclean is true after a failed start until a stop succeeds.
	// +optional
	Unclean bool `json:"unclean,omitempty"`
}

// Unanswered is a member whose status command does not respond.
type Unanswered struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// ContainerID of the container. The command is retried in the next container.
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID"`
	// Since is when the command first did not respond.
	Since metav1.Time `json:"since"`
}

// MembershipState is the state of a member in the application.
// +kubebuilder:validation:Enum=Joined;Leaving;Left
type MembershipState string

const (
	// MembershipJoined: a start of the member was sent, or the member was observed running.
	MembershipJoined MembershipState = "Joined"
	// MembershipLeaving: the command leave was sent since then, and has not succeeded. The
	// application may have forgotten the member.
	MembershipLeaving MembershipState = "Leaving"
	// MembershipLeft: the command leave has succeeded since then.
	MembershipLeft MembershipState = "Left"
)

// Membership is the membership of a member in the application.
type Membership struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// State of the membership.
	State MembershipState `json:"state"`
	// Failures is how often leave has failed since it was first sent, and ExitCode and LastFailure
	// are those of the last one.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// ExitCode of the last failure.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`
	// LastFailure is the time of the last failure.
	// +optional
	LastFailure *metav1.Time `json:"lastFailure,omitempty"`
}

// MaintenanceState is the state of a member in spec.maintenance.
// +kubebuilder:validation:Enum=HandingOver;Waiting;Parked
type MaintenanceState string

const (
	// MaintenanceHandingOver: the member is or was just primary, and no other member has its role
	// yet.
	MaintenanceHandingOver MaintenanceState = "HandingOver"
	// MaintenanceWaiting: a command in the member may still run.
	MaintenanceWaiting MaintenanceState = "Waiting"
	// MaintenanceParked: only the commands status and sequence run in the member.
	MaintenanceParked MaintenanceState = "Parked"
)

// MemberMaintenance is a member of spec.maintenance.
type MemberMaintenance struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// State of the member.
	State MaintenanceState `json:"state"`
	// Since is when the state began.
	Since metav1.Time `json:"since"`
}
