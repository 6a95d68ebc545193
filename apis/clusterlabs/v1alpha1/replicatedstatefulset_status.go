package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is the state of the set in one word.
// +kubebuilder:validation:Enum="";Creating;Running;Paused;Failed
type Phase string

const (
	// PhaseNone: the operator has not looked at the object yet.
	PhaseNone Phase = ""
	// PhaseCreating: no member has been started yet.
	PhaseCreating Phase = "Creating"
	// PhaseRunning: the operator keeps the members running.
	PhaseRunning Phase = "Running"
	// PhasePaused: the operator does nothing; reason says why.
	PhasePaused Phase = "Paused"
	// PhaseFailed: nothing can be done until a person acts; reason says what is
	// the matter. The phase goes when its cause goes.
	PhaseFailed Phase = "Failed"
)

// ReplicatedStatefulSetStatus is what the operator sees, and in epoch, sequences,
// grants and commands what it must not forget: these are written before what they
// speak of is done.
type ReplicatedStatefulSetStatus struct {
	// Problem is why the other fields are empty: the status that is stored does not decode. "" if it
	// does. It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is Creating, Running, Paused or Failed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase Phase `json:"phase,omitempty"`
	// Reason says in a sentence why the phase is what it is.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reason"
	Reason string `json:"reason,omitempty"`
	// ControlPaused is true while spec.paused is heeded.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Paused"
	ControlPaused bool `json:"controlPaused,omitempty"`
	// Replicas is the number of pods that run.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of members whose application runs, as primary
	// or secondary, in a pod that is Ready.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready replicas"
	ReadyReplicas int32 `json:"readyReplicas"`
	// Primaries is the number of members that are primary.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Primaries"
	Primaries int32 `json:"primaries"`
	// PrimariesWanted is the number of members that are to be primary now: what
	// spec.primaries comes to.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Primaries wanted"
	PrimariesWanted int32 `json:"primariesWanted"`
	// RestoreReplicas is the number of members that were last there all at once.
	// It is kept while replicas is 0: a set comes back with that many or more,
	// since the newest copy may be on any of them.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas to come back with"
	RestoreReplicas int32 `json:"restoreReplicas,omitempty"`
	// Selector selects the pods, in the form that /scale wants.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`
	// ServiceName is the headless Service of all members.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Service",xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"}
	ServiceName string `json:"serviceName,omitempty"`
	// Members are the names of the pods by what they do.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podStatuses"}
	Members Members `json:"members,omitempty"`
	// Epoch counts how often a first primary was started, by a seed or when all
	// others had stopped, from 1. It is counted up before that one is told to
	// start, so that what members said before can be told from what they say
	// after.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Epoch"
	Epoch int64 `json:"epoch,omitempty"`
	// Sequences are how new the copies of the members are, as they said last.
	// They stay when a pod goes, since its data does.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Sequences",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Sequences []Sequence `json:"sequences,omitempty"`
	// Grants are the containers in which the application may be primary: never
	// fewer than those in which it is. Each is written here before a command that
	// may make it one is sent, and goes only on proof that it is none any more.
	// The operator needs them; do not edit them.
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	// +listType=map
	// +listMapKey=uid
	// +listMapKey=containerID
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Grants",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Grants []Grant `json:"grants,omitempty"`
	// Commands were begun, and their end has not been seen: each is written here
	// before it is sent, so that an operator that starts anew knows of it.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=uid
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Running commands",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Commands []RunningCommand `json:"commands,omitempty"`
	// Failures are how often starts and stops of members failed lately.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Failures",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Failures []Failure `json:"failures,omitempty"`
	// Unanswered are members that run, and whose command status has not answered for
	// longer than 30 seconds. They stay here until it does, whatever becomes of the
	// operator.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Without an answer",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Unanswered []Unanswered `json:"unanswered,omitempty"`
	// Maintenance are the members of spec.maintenance, and how far they are. It is written
	// before it is heeded. The operator needs it; do not edit it.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=pod
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Maintenance"
	Maintenance []MemberMaintenance `json:"maintenance,omitempty"`
	// Orders are those of spec.switchoverTo and spec.seedFrom, the newest first, and what
	// became of them: the last 16 of each. It is written before one is carried out, and one
	// that is in it is not carried out again. The operator needs it; do not edit it.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=order
	// +listMapKey=id
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Orders"
	Orders []OrderStatus `json:"orders,omitempty"`
	// Conditions are Available, Progressing, Degraded, Seeded, DataLossRisk, Paused,
	// Draining, Maintenance, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Members are the names of the pods by what they do, each list sorted by ordinal.
type Members struct {
	// Ready are pods that run, whatever the application in them does.
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
	// Failed are members that run a pod and failed in it: their status said so,
	// or a start did not succeed.
	// +optional
	// +listType=atomic
	Failed []string `json:"failed,omitempty"`
}

// Sequence is how new the copy of a member is.
type Sequence struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// Sequence is what the command sequence printed: an unsigned number of 64
	// bits, in decimal.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[0-9]+$`
	Sequence string `json:"sequence"`
	// Epoch is status.epoch when it was read.
	// +optional
	Epoch int64 `json:"epoch"`
	// Time at which it was read.
	Time metav1.Time `json:"time"`
}

// Grant lets the application of one container be primary.
type Grant struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// UID of the pod.
	UID types.UID `json:"uid"`
	// ContainerID of the container: in another one it is not primary by this.
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID"`
	// Epoch is status.epoch when it was given.
	// +optional
	Epoch int64 `json:"epoch"`
	// Since is when it was given.
	Since metav1.MicroTime `json:"since"`
	// BeginWithin is how long after that the start may begin that it was given for.
	// Longer than 5s, which nothing means, where the API server was slow.
	// +optional
	BeginWithin *metav1.Duration `json:"beginWithin,omitempty"`
	// Confirmed is true once the member was seen running as primary.
	// +optional
	Confirmed bool `json:"confirmed,omitempty"`
}

// RunningCommand is a command that was begun and whose end has not been seen.
type RunningCommand struct {
	// Pod that it runs in.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// UID of the pod: in another pod of that name it does not run.
	UID types.UID `json:"uid"`
	// ContainerID of the container: in another one it does not run.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID,omitempty"`
	// RestartCount of the container when the command was begun.
	// +optional
	RestartCount int32 `json:"restartCount"`
	// Name of the command, as in spec.pod.commands.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// StartedAt is when the operator sent it.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// Timeout is how long it was given.
	Timeout metav1.Duration `json:"timeout"`
	// BeginWithin is how long after startedAt it may begin. Longer than 5s, which
	// nothing means, where the API server was slow.
	// +optional
	BeginWithin *metav1.Duration `json:"beginWithin,omitempty"`
}

// Failure counts the failed starts and stops of a member.
type Failure struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// UID of the pod in which it failed last: another pod of that name has not failed,
	// but where a seed, primary or promote ended with 0 and made no primary.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// ContainerID of the container in which it failed last.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID,omitempty"`
	// Count of starts and stops that failed, each within failureWindow of the
	// one before.
	Count int32 `json:"count"`
	// Last is when one failed last.
	Last metav1.Time `json:"last"`
	// Command is what failed last, as in spec.pod.commands.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Command string `json:"command,omitempty"`
	// Code is the exit code of what failed last; 0 is one that ended with 0 and
	// that status denied.
	// +optional
	Code int32 `json:"code,omitempty"`
	// Generation of the spec when it failed last. With the exit codes 2 to 5 the
	// member is not started again before the spec or its pod is another, with 6
	// none of the set is before the spec is.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Unclean is true from a failed start until a stop succeeds.
	// +optional
	Unclean bool `json:"unclean,omitempty"`
}

// Unanswered is a member whose command status does not answer.
type Unanswered struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// ContainerID of the container that was asked: the next one is asked anew.
	// +kubebuilder:validation:MaxLength=253
	ContainerID string `json:"containerID"`
	// Since is when it was first asked in vain.
	Since metav1.Time `json:"since"`
}

// MaintenanceState is how far a member of spec.maintenance is.
// +kubebuilder:validation:Enum=HandingOver;Waiting;Parked
type MaintenanceState string

const (
	// MaintenanceHandingOver: it is primary, or was a moment ago, and no other member has
	// its role yet.
	MaintenanceHandingOver MaintenanceState = "HandingOver"
	// MaintenanceWaiting: a command in it has not ended, as far as is known.
	MaintenanceWaiting MaintenanceState = "Waiting"
	// MaintenanceParked: no command but status and sequence is run in it.
	MaintenanceParked MaintenanceState = "Parked"
)

// MemberMaintenance is a member of spec.maintenance.
type MemberMaintenance struct {
	// Pod is the name of the member.
	// +kubebuilder:validation:MaxLength=63
	Pod string `json:"pod"`
	// State is how far it is.
	State MaintenanceState `json:"state"`
	// Since is when it came to be so.
	Since metav1.Time `json:"since"`
}
