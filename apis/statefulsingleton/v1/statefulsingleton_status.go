package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is the state of the singleton in one word.
// +kubebuilder:validation:Enum=Running;Transitioning;Failed
type Phase string

const (
	// PhaseRunning: one pod has the grant and no handover is in progress, or there are no pods.
	PhaseRunning Phase = "Running"
	// PhaseTransitioning: a pod waits, and no pod has a permanent grant.
	PhaseTransitioning Phase = "Transitioning"
	// PhaseFailed: a handover takes longer than maxTransitionTime, several pods may be running the
	// program, or the spec is invalid. The conditions have the problem and instructions.
	PhaseFailed Phase = "Failed"
)

// StatefulSingletonStatus is the observed state. Its field holder is a decision: the holder of the
// grant is recorded there before any other action.
type StatefulSingletonStatus struct {
	// Problem is why the other fields are empty: the stored status does not decode. "" if it does.
	// It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec to which this status applies.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ActivePod is the name of the pod that may run its program; empty if there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Active pod",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"}
	ActivePod string `json:"activePod,omitempty"`
	// Phase is Running, Transitioning or Failed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase Phase `json:"phase,omitempty"`
	// TransitionTimestamp is when the present handover began; absent if there is none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Handover began"
	TransitionTimestamp *metav1.Time `json:"transitionTimestamp,omitempty"`
	// StatusTimestamp is when this status last changed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Changed"
	StatusTimestamp *metav1.Time `json:"statusTimestamp,omitempty"`
	// Message describes the state in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Message"
	Message string `json:"message,omitempty"`
	// Holder is the pod that got the last grant. It is kept here after that pod is deleted, until
	// another pod gets the grant, so that epoch never decreases. The operator needs it; do not edit
	// it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Holder"
	Holder *Holder `json:"holder,omitempty"`
	// Waiting has the names of the first 32 waiting pods, the next one first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Waiting pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Waiting []string `json:"waiting,omitempty"`
	// WaitingCount is the number of waiting pods.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Pods that wait",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	WaitingCount int32 `json:"waitingCount"`
	// LastTransitionSeconds is the duration of the last handover, in whole seconds: from
	// transitionTimestamp to the grant. It includes the shutdown of the old program.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Seconds of the last handover"
	LastTransitionSeconds *int64 `json:"lastTransitionSeconds,omitempty"`
	// Orders are the states of the orders in spec.release, the newest first: the last 16. The
	// operator needs them; do not edit them.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=id
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Orders"
	Orders []OrderStatus `json:"orders,omitempty"`
	// Replaced are the last 16 pods of unknown owners that onTimeout deleted for another pod. It
	// does not delete a pod for one of the same owner and revision. An entry is removed after no
	// such pod has existed for an hour. All entries are removed while onTimeout is Wait. The
	// operator needs them; do not edit them.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replaced pods",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Replaced []ReplacedPod `json:"replaced,omitempty"`
	// Decisions are the last decisions of the operator about this object, the newest last: at most 20,
	// and 4 KiB of JSON. They are written only together with another change of the status. Events
	// have more detail, but expire after an hour.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last decisions",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Decisions []Decision `json:"decisions,omitempty"`
	// Conditions are Available, Progressing, Degraded, UnmanagedPod, SelectorConflict,
	// RolloutHeld, GuardMissing, Ready, Reconciling and Stalled.
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

// Holder is the pod that got the grant.
type Holder struct {
	// Name of the pod.
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Holder",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"}
	Name string `json:"name"`
	// UID of the pod. Another pod of that name is not the holder.
	UID types.UID `json:"uid"`
	// Node of the pod at the time of the grant.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Node of the holder",xDescriptors={"urn:alm:descriptor:io.kubernetes:Node"}
	Node string `json:"node,omitempty"`
	// Since is when this pod was chosen.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Holder since"
	Since *metav1.Time `json:"since,omitempty"`
	// Lease is the name of the Lease that decides which pod runs its program; empty without fencing by
	// a Lease.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Lease of the holder"
	Lease string `json:"lease,omitempty"`
	// Epoch counts the grants of this object, from 1. It is also in the pod's grant. Programs may
	// use it as a fencing token.
	// +kubebuilder:validation:Minimum=1
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Epoch"
	Epoch int64 `json:"epoch"`
}

// ReplacedPod is a pod of an unknown owner that onTimeout deleted for another pod.
type ReplacedPod struct {
	// Name of the pod.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Owner is the UID of its owner; empty if it had none.
	// +optional
	Owner types.UID `json:"owner,omitempty"`
	// Revision is the same for all pods that the owner creates from one template. For a pod without
	// an owner it is its generateName or name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// For is the name of the pod for which it was deleted.
	// +kubebuilder:validation:MaxLength=253
	For string `json:"for"`
	// DeletedAt is when the deletion was decided.
	DeletedAt metav1.Time `json:"deletedAt"`
	// MissingSince is the time since when no pod of this owner and revision exists.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`
}
