package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is the state of the singleton in one word.
// +kubebuilder:validation:Enum=Running;Transitioning;Failed
type Phase string

const (
	// PhaseRunning: one pod has the grant and none is on the way, or there are
	// no pods at all.
	PhaseRunning Phase = "Running"
	// PhaseTransitioning: a pod waits, and no pod holds the grant for good.
	PhaseTransitioning Phase = "Transitioning"
	// PhaseFailed: a handover takes longer than maxTransitionTime, several pods
	// may be running the program, or the spec cannot be served; the conditions
	// say which and what to do.
	PhaseFailed Phase = "Failed"
)

// StatefulSingletonStatus is what the operator sees, and in holder what it has
// decided: who holds the grant is written here before anything else is done.
type StatefulSingletonStatus struct {
	// Problem is why the other fields are empty: the status that is stored does not decode. "" if it
	// does. It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ActivePod is the name of the pod that may run its program; empty if there
	// is none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Active pod",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"}
	ActivePod string `json:"activePod,omitempty"`
	// Phase is Running, Transitioning or Failed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase Phase `json:"phase,omitempty"`
	// TransitionTimestamp is when the present handover began; absent when there
	// is none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Handover began"
	TransitionTimestamp *metav1.Time `json:"transitionTimestamp,omitempty"`
	// StatusTimestamp is when this status last changed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Changed"
	StatusTimestamp *metav1.Time `json:"statusTimestamp,omitempty"`
	// Message says in a sentence what is going on.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Message"
	Message string `json:"message,omitempty"`
	// Holder is the pod that was granted the start last. It stays here when that
	// pod is gone, until another takes its place, so that epoch never goes back.
	// The operator needs it; do not edit it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Holder"
	Holder *Holder `json:"holder,omitempty"`
	// Waiting names the first 32 pods that wait for their turn, the next one
	// first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Waiting pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Waiting []string `json:"waiting,omitempty"`
	// WaitingCount is how many pods wait for their turn.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Pods that wait",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	WaitingCount int32 `json:"waitingCount"`
	// LastTransitionSeconds is how long the last handover took, in whole
	// seconds: from transitionTimestamp to the grant. It counts the old
	// program's own shutdown.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Seconds of the last handover"
	LastTransitionSeconds *int64 `json:"lastTransitionSeconds,omitempty"`
	// Orders are those of spec.release, the newest first, and what became of them: the last
	// 16. The operator needs them; do not edit them.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=id
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Orders"
	Orders []OrderStatus `json:"orders,omitempty"`
	// Replaced are the last 16 pods of unknown owners that onTimeout deleted for another pod.
	// It deletes no pod for one of the same owner and revision. An entry is removed when no
	// such pod has existed for an hour, and all are while onTimeout is Wait. The operator
	// needs them; do not edit them.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replaced pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Replaced []ReplacedPod `json:"replaced,omitempty"`
	// Conditions are Available, Progressing, Degraded, UnmanagedPod, SelectorConflict,
	// RolloutHeld, GuardMissing, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Holder is the pod that was granted the start.
type Holder struct {
	// Name of the pod.
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Holder",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"}
	Name string `json:"name"`
	// UID of the pod: another pod of that name is not the holder.
	UID types.UID `json:"uid"`
	// Node that the pod was on when it was granted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Node of the holder",xDescriptors={"urn:alm:descriptor:io.kubernetes:Node"}
	Node string `json:"node,omitempty"`
	// Since is when it was decided that this pod is next.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Holder since"
	Since *metav1.Time `json:"since,omitempty"`
	// Epoch counts the grants of this object, from 1. It is also in the pod's
	// grant, where programs may use it as a fencing token.
	// +kubebuilder:validation:Minimum=1
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Epoch"
	Epoch int64 `json:"epoch"`
}

// ReplacedPod is a pod that onTimeout deleted for another one, whose owner the operator does
// not know.
type ReplacedPod struct {
	// Name of the pod.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Owner is the UID of its owner; empty if it had none.
	// +optional
	Owner types.UID `json:"owner,omitempty"`
	// Revision is the same for all pods that the owner creates from one template. Of a pod
	// without an owner it is its generateName or name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// For is the name of the pod for which it was deleted.
	// +kubebuilder:validation:MaxLength=253
	For string `json:"for"`
	// DeletedAt is when that was decided.
	DeletedAt metav1.Time `json:"deletedAt"`
	// MissingSince is since when no pod of this owner and revision exists.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`
}
