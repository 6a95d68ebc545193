package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StatefulClusterStatus is the observed state.
type StatefulClusterStatus struct {
	// Problem is why the other fields are empty: the stored status does not decode. "" if it does.
	// It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec to which this status applies.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of members: pods owned by this object that are neither lost nor
	// terminating.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of members that are Ready.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready replicas"
	ReadyReplicas int32 `json:"readyReplicas"`
	// AvailableReplicas is the number of members Ready for minReadySeconds.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Available replicas"
	AvailableReplicas int32 `json:"availableReplicas"`
	// CurrentReplicas is the number of members at the current revision.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas at the current revision"
	CurrentReplicas int32 `json:"currentReplicas"`
	// UpdatedReplicas is the number of members at the update revision.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Updated replicas"
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// CurrentRevision is the last revision that all members had.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Current revision"
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision is the revision of the present spec.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Update revision"
	UpdateRevision string `json:"updateRevision,omitempty"`
	// CollisionCount distinguishes the names of revisions with the same hash.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Collisions"
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Selector is the selector in the format of /scale.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`
	// LostReplicas is the number of lost members without a Ready replacement.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Lost replicas"
	LostReplicas int32 `json:"lostReplicas"`
	// Lost lists the last 10 lost members, newest first.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Lost members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Lost []LostMember `json:"lost,omitempty"`
	// Updating lists the members whose pod is being recreated with the same name, because of an
	// update or of an eviction that keeps the member.
	// +optional
	// +kubebuilder:validation:MaxItems=20000
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Updating members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Updating []UpdatingMember `json:"updating,omitempty"`
	// Creating has the names of new members whose pod has not been observed yet. A name is recorded
	// here before a pod with it is created, so that a restarted operator uses the same names.
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Names of members that are being created",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Creating []string `json:"creating,omitempty"`
	// Claims are the claims of present and former members, at most 2000. A claim that is not listed
	// here is not deleted by persistentVolumeClaimRetentionPolicy, and no member uses it unless it
	// is given to the set (annotation enge.me/adopt).
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Claims on record",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Claims []RecordedClaim `json:"claims,omitempty"`
	// Decisions are the last decisions of the operator about this object, the newest last: at most 20,
	// and 4 KiB of JSON. They are written only together with another change of the status. Events
	// have more detail, but expire after an hour.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last decisions",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Decisions []Decision `json:"decisions,omitempty"`
	// Conditions are Available, Progressing, Degraded, Ready, Reconciling and Stalled.
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

// LostMember is a member that was lost.
type LostMember struct {
	// Name of the pod. It is never used again in the set.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Reason for the loss.
	Reason LossReason `json:"reason"`
	// Time at which the loss was recorded.
	Time metav1.Time `json:"time"`
	// Claims of the member that were retained.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Claims []string `json:"claims,omitempty"`
}

// RecordedClaim is a claim that belongs to a member.
type RecordedClaim struct {
	// Name of the claim.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// UID of the claim. The record does not apply to another claim of the same name.
	UID types.UID `json:"uid"`
}

// UpdatingMember is a member whose pod is being recreated with the same name.
type UpdatingMember struct {
	// Name of the pod.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// UID of the old pod.
	UID types.UID `json:"uid"`
	// Revision of the new pod.
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// Reason is Update, or Eviction for a member that replacement.onEviction
	// keeps. Defaults to Update.
	// +optional
	Reason UpdatingReason `json:"reason,omitempty"`
}

// UpdatingReason is why a pod is recreated with the same name.
// +kubebuilder:validation:Enum=Update;Eviction
type UpdatingReason string

const (
	// UpdatingUpdate: an update recreates the pod.
	UpdatingUpdate UpdatingReason = "Update"
	// UpdatingEviction: the pod was evicted and its member is kept.
	UpdatingEviction UpdatingReason = "Eviction"
)
