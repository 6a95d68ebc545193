package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Phase is the state of an upgrade.
// +kubebuilder:validation:Enum=Stable;Waiting;PreJob;Canary;Promoting;PostJob;CleaningUp;Aborted;Stale
type Phase string

const (
	// PhaseStable: the version of the template serves, and no other exists.
	PhaseStable Phase = "Stable"
	// PhaseWaiting: an upgrade waits until the serving version is Ready.
	PhaseWaiting Phase = "Waiting"
	// PhasePreJob: preUpdateJob runs.
	PhasePreJob Phase = "PreJob"
	// PhaseCanary: the first pods of the new version are being tested.
	PhaseCanary Phase = "Canary"
	// PhasePromoting: the new version replaces the remaining pods.
	PhasePromoting Phase = "Promoting"
	// PhasePostJob: postUpdateJob runs.
	PhasePostJob Phase = "PostJob"
	// PhaseCleaningUp: the new version serves, and lower ones are removed.
	PhaseCleaningUp Phase = "CleaningUp"
	// PhaseAborted: a failed job stopped the upgrade; the old version serves.
	PhaseAborted Phase = "Aborted"
	// PhaseStale: the new version was rolled back; the old version serves.
	PhaseStale Phase = "Stale"
)

// ExtendedStatefulSetStatus is the observed state, and the operator's record of its actions.
type ExtendedStatefulSetStatus struct {
	// Problem is why the other fields are empty: the stored status does not decode. "" if it does.
	// It is neither sent nor stored.
	Problem string `json:"-"`

	// ObservedGeneration is the generation of the spec to which this status applies.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Versions has each version that has a StatefulSet. The value is true if at least one of its
	// pods is Ready.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Versions",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Versions map[string]bool `json:"versions,omitempty"`
	// CurrentVersion is the serving version. 0 before the first.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Current version"
	CurrentVersion int64 `json:"currentVersion,omitempty"`
	// CurrentDigest is the digest of the content of the serving version.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Digest that serves"
	CurrentDigest string `json:"currentDigest,omitempty"`
	// UpdateVersion is the version of the present template, once it has one.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Version of the template"
	UpdateVersion int64 `json:"updateVersion,omitempty"`
	// CurrentRevision is the serving revision: its number, and a prefix of the digest of its
	// content.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Current revision"
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision is the revision of the present or failed upgrade, or otherwise the serving
	// revision. Use it in spec.approvedRevision.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Revision of the template"
	UpdateRevision string `json:"updateRevision,omitempty"`
	// VersionHighWater is the highest version number ever used. It is recorded before the first
	// object of that version is created.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Highest version"
	VersionHighWater int64 `json:"versionHighWater,omitempty"`
	// Phase is the state of the upgrade.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase Phase `json:"phase,omitempty"`
	// Attempts is the number of attempts that the present upgrade has started.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Attempts"
	Attempts int32 `json:"attempts,omitempty"`
	// Update is the present or failed upgrade. It is absent while the version of the template
	// serves.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Upgrade under way"
	Update *UpdateStatus `json:"update,omitempty"`
	// Replicas is the number of pods; with zones, of the pods in the first zone.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of Ready pods of the serving version in all zones; while ordinals
	// move, of any version.
	// +optional
	// +kubebuilder:default=0
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready replicas"
	ReadyReplicas int32 `json:"readyReplicas"`
	// Selector selects the serving pods, in the format of /scale; with zones, those in the first
	// zone.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector"
	Selector string `json:"selector,omitempty"`
	// Zones has the permanent index of each zone that was ever in the spec. Names of claims contain
	// it.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Zones",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Zones []ZoneStatus `json:"zones,omitempty"`
	// Decisions are the last decisions of the operator about this object, the newest last: at most 20,
	// and 4 KiB of JSON. They are written only together with another change of the status. Events
	// have more detail, but expire after an hour.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Last decisions",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Decisions []Decision `json:"decisions,omitempty"`
	// Conditions are Available, Progressing, Degraded, Stale, Aborted, ConfigMissing,
	// Ready, Reconciling and Stalled.
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

// ZoneStatus is one zone.
type ZoneStatus struct {
	// Name of the zone.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Index of the zone, from 0, in names and labels.
	Index int32 `json:"index"`
	// Replicas is the number of pods in the zone; 0 if it was removed from the spec.
	// +optional
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of Ready pods in the zone.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
}

// UpdateStatus is an upgrade. A restarted operator continues with it.
type UpdateStatus struct {
	// Digest of the content of the version.
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest"`
	// Handover of this upgrade, which never changes: Coexist or PerOrdinal.
	Handover Handover `json:"handover"`
	// EarlierAttempts is the number of attempts of earlier upgrades to the same version.
	// +optional
	EarlierAttempts int32 `json:"earlierAttempts,omitempty"`
	// Zone that is being upgraded; empty without zones.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Zone of the upgrade"
	Zone string `json:"zone,omitempty"`
	// StartedAt is when the attempt began; updateWatchTime counts from it.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// CanaryAt is when the canaries of the zone were requested. canaryWatchTime counts from it, or
	// from the creation of their StatefulSet if that was later.
	// +optional
	CanaryAt *metav1.Time `json:"canaryAt,omitempty"`
	// GoodAt is when the canaries of the zone became good, while they wait for a job or for
	// approval. canaryWatchTime is paused from then on.
	// +optional
	GoodAt *metav1.Time `json:"goodAt,omitempty"`
	// HeldAt is when good canaries began to wait for approval. updateWatchTime is paused from then
	// on.
	// +optional
	HeldAt *metav1.Time `json:"heldAt,omitempty"`
	// Approved is true after the revision was approved. Further zones and attempts need no
	// approval.
	// +optional
	Approved bool `json:"approved,omitempty"`
	// Returning is true while a failed attempt is being rolled back.
	// +optional
	Returning bool `json:"returning,omitempty"`
	// Reason of the last failure, in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Reason of the last failure",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase:reason"}
	Reason string `json:"reason,omitempty"`
	// Message of the last failure, for users.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Message of the last failure"
	Message string `json:"message,omitempty"`
	// PreJob is the job before this attempt.
	// +optional
	PreJob *JobStatus `json:"preJob,omitempty"`
	// CanaryJob is postUpdateJob if it runs for the canaries.
	// +optional
	CanaryJob *JobStatus `json:"canaryJob,omitempty"`
	// PostJob is the job after this attempt.
	// +optional
	PostJob *JobStatus `json:"postJob,omitempty"`
}

// JobStatus is a job before or after an upgrade. The Job is created suspended, and is resumed only
// after its UID is recorded here. Therefore no job runs twice, even if it is deleted.
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

// JobResult is the result of a job.
// +kubebuilder:validation:Enum=Succeeded;Failed;Unknown
type JobResult string

const (
	// JobSucceeded: the Job is complete.
	JobSucceeded JobResult = "Succeeded"
	// JobFailed: the Job failed, or another client deleted it before it was complete.
	JobFailed JobResult = "Failed"
	// JobUnknown: the Job was deleted, and the operator has not observed whether it was complete.
	JobUnknown JobResult = "Unknown"
)
