package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is where an upgrade stands.
// +kubebuilder:validation:Enum=Stable;Waiting;PreJob;Canary;Promoting;PostJob;CleaningUp;Aborted;Stale
type Phase string

const (
	// PhaseStable: the version of the template serves, and no other is there.
	PhaseStable Phase = "Stable"
	// PhaseWaiting: an upgrade waits until the version that serves is Ready.
	PhaseWaiting Phase = "Waiting"
	// PhasePreJob: preUpdateJob runs.
	PhasePreJob Phase = "PreJob"
	// PhaseCanary: the first pods of the new version have to prove themselves.
	PhaseCanary Phase = "Canary"
	// PhasePromoting: the new version takes over the rest.
	PhasePromoting Phase = "Promoting"
	// PhasePostJob: postUpdateJob runs.
	PhasePostJob Phase = "PostJob"
	// PhaseCleaningUp: the new version serves, and lower ones go.
	PhaseCleaningUp Phase = "CleaningUp"
	// PhaseAborted: a failed job stopped the upgrade; the old version serves.
	PhaseAborted Phase = "Aborted"
	// PhaseStale: the new version was given up; the old version serves.
	PhaseStale Phase = "Stale"
)

// ExtendedStatefulSetStatus is what the operator sees, and what it must not
// forget.
type ExtendedStatefulSetStatus struct {
	// Problem is why the other fields are empty: the status that is stored does not decode. "" if it
	// does. It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Versions says of each version that has a StatefulSet whether at least one
	// of its pods is Ready.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Versions",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Versions map[string]bool `json:"versions,omitempty"`
	// CurrentVersion is the version that serves. 0 before the first.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Current version"
	CurrentVersion int64 `json:"currentVersion,omitempty"`
	// CurrentDigest is the digest of the content of the version that serves.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Digest that serves"
	CurrentDigest string `json:"currentDigest,omitempty"`
	// UpdateVersion is the version of the present template, once it has one.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Version of the template"
	UpdateVersion int64 `json:"updateVersion,omitempty"`
	// CurrentRevision is the revision that serves: its number, and the begin of the
	// digest of its content.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Current revision"
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision is the revision of the upgrade under way, or of the one that
	// failed; else that which serves. It is what spec.approvedRevision names.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Revision of the template"
	UpdateRevision string `json:"updateRevision,omitempty"`
	// VersionHighWater is the highest version that was ever given out. It is
	// written before the first object of that version is made.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Highest version"
	VersionHighWater int64 `json:"versionHighWater,omitempty"`
	// Phase is where the upgrade stands.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase Phase `json:"phase,omitempty"`
	// Attempts is how many attempts the present upgrade has begun.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Attempts"
	Attempts int32 `json:"attempts,omitempty"`
	// Update is the upgrade under way, or the one that failed. None while the
	// version of the template serves.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Upgrade under way"
	Update *UpdateStatus `json:"update,omitempty"`
	// Replicas is the number of pods; with zones, of those in the first zone.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of pods of the version that serves, or while
	// ordinals move of any version, that are Ready, in all zones.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready replicas"
	ReadyReplicas int32 `json:"readyReplicas"`
	// Selector selects the pods that serve, in the form that /scale wants; with
	// zones, those in the first zone.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`
	// Zones gives each zone that was ever named its index for good: claims are
	// named after it.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Zones",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Zones []ZoneStatus `json:"zones,omitempty"`
	// Conditions are Available, Progressing, Degraded, Stale, Aborted, ConfigMissing,
	// Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ZoneStatus is one zone.
type ZoneStatus struct {
	// Name of the zone.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Index of the zone, from 0, in names and labels.
	Index int32 `json:"index"`
	// Replicas is the number of pods in the zone; 0 in one that was taken off the
	// spec.
	// +optional
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of those that are Ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
}

// UpdateStatus is an upgrade. Decisions rest on it after a restart of the
// operator.
type UpdateStatus struct {
	// Digest of the content of the version.
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest"`
	// Handover is how this upgrade takes over, once and for all: Coexist or
	// PerOrdinal.
	Handover Handover `json:"handover"`
	// EarlierAttempts is how many attempts upgrades before this one made with the
	// same version.
	// +optional
	EarlierAttempts int32 `json:"earlierAttempts,omitempty"`
	// Zone is the zone that is upgraded; none without zones.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Zone of the upgrade"
	Zone string `json:"zone,omitempty"`
	// StartedAt is when the attempt began; updateWatchTime counts from it.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// CanaryAt is when the canaries of the zone were asked for; canaryWatchTime
	// counts from it, or from when their StatefulSet was made if that was later.
	// +optional
	CanaryAt *metav1.Time `json:"canaryAt,omitempty"`
	// GoodAt is since when the canaries of the zone are good, while they wait for a
	// job or for approval. canaryWatchTime stands still from then on.
	// +optional
	GoodAt *metav1.Time `json:"goodAt,omitempty"`
	// HeldAt is since when good canaries wait for approval. updateWatchTime stands
	// still from then on.
	// +optional
	HeldAt *metav1.Time `json:"heldAt,omitempty"`
	// Approved is true once the revision was approved and went on. Further zones and
	// attempts ask no more.
	// +optional
	Approved bool `json:"approved,omitempty"`
	// Returning is true while a failed attempt gives back what it took.
	// +optional
	Returning bool `json:"returning,omitempty"`
	// Reason is why the last attempt failed: one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reason of the last failure",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase:reason"}
	Reason string `json:"reason,omitempty"`
	// Message is the same for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Message of the last failure"
	Message string `json:"message,omitempty"`
	// PreJob is the job before this attempt.
	// +optional
	PreJob *JobStatus `json:"preJob,omitempty"`
	// CanaryJob is postUpdateJob where it is asked about the canaries.
	// +optional
	CanaryJob *JobStatus `json:"canaryJob,omitempty"`
	// PostJob is the job after it.
	// +optional
	PostJob *JobStatus `json:"postJob,omitempty"`
}

// JobStatus is a job before or after an upgrade. The Job is made suspended, and
// only goes once its UID is here: so none runs twice, also if it is deleted.
type JobStatus struct {
	// Name of the Job.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// UID of the Job.
	UID types.UID `json:"uid"`
	// Result of the Job; none while it runs.
	// +optional
	Result JobResult `json:"result,omitempty"`
}

// JobResult says how a job ended.
// +kubebuilder:validation:Enum=Succeeded;Failed;Unknown
type JobResult string

const (
	// JobSucceeded: the Job is complete.
	JobSucceeded JobResult = "Succeeded"
	// JobFailed: the Job failed, or somebody deleted it before it was complete.
	JobFailed JobResult = "Failed"
	// JobUnknown: the Job was deleted, and the operator did not see whether it was
	// complete.
	JobUnknown JobResult = "Unknown"
)
