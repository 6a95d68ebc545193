package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StatefulClusterStatus is what the operator sees.
type StatefulClusterStatus struct {
	// Problem is why the other fields are empty: the status that is stored does not decode. "" if it
	// does. It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of members: pods owned by this object that are
	// neither lost nor being deleted.
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
	// CurrentRevision is the revision that all members had last.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Current revision"
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision is the revision of the present spec.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Update revision"
	UpdateRevision string `json:"updateRevision,omitempty"`
	// CollisionCount makes revision names differ where two hash alike.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Collisions"
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Selector is the selector in the form that /scale wants.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`
	// LostReplicas is the number of members that are lost and have no Ready
	// replacement yet.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Lost replicas"
	LostReplicas int32 `json:"lostReplicas"`
	// Lost names the last 10 members that were lost, newest first.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Lost members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Lost []LostMember `json:"lost,omitempty"`
	// Updating names the members whose pod is deleted by an update, or by an
	// eviction that keeps the member, and comes back under the same name.
	// +optional
	// +kubebuilder:validation:MaxItems=20000
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Updating members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Updating []UpdatingMember `json:"updating,omitempty"`
	// Creating holds the names of new members whose pod was not seen yet. A name
	// is written here before a pod is created under it, so that whoever goes on
	// with the work goes on with the same names.
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Names of members that are being created",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Creating []string `json:"creating,omitempty"`
	// Claims are those of members, and of those that were, at most 2000. A claim
	// that is not named here is not deleted by persistentVolumeClaimRetentionPolicy,
	// and no member comes back on it unless it is given to the set
	// (annotation enge.me/adopt).
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Claims on record",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Claims []RecordedClaim `json:"claims,omitempty"`
	// Conditions are Available, Progressing, Degraded, Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LostMember is a member that was lost.
type LostMember struct {
	// Name of the pod; no other pod of the set will ever have it.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Reason why the member counts as lost.
	Reason LossReason `json:"reason"`
	// Time at which the loss was recorded.
	Time metav1.Time `json:"time"`
	// Claims of the member that were retained.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Claims []string `json:"claims,omitempty"`
}

// RecordedClaim is a claim that is known to be a member's.
type RecordedClaim struct {
	// Name of the claim.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// UID of the claim; another of the same name is not meant.
	UID types.UID `json:"uid"`
}

// UpdatingMember is a member whose pod comes back under the same name.
type UpdatingMember struct {
	// Name of the pod.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// UID of the pod that goes.
	UID types.UID `json:"uid"`
	// Revision of the pod that comes.
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// Reason is Update, or Eviction for a member that replacement.onEviction
	// keeps. Defaults to Update.
	// +optional
	Reason UpdatingReason `json:"reason,omitempty"`
}

// UpdatingReason says why a pod comes back under its name.
// +kubebuilder:validation:Enum=Update;Eviction
type UpdatingReason string

const (
	// UpdatingUpdate: an update recreates the pod.
	UpdatingUpdate UpdatingReason = "Update"
	// UpdatingEviction: the pod was evicted and its member is kept.
	UpdatingEviction UpdatingReason = "Eviction"
)
