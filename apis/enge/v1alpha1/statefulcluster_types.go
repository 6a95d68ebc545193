package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodManagementPolicy specifies how many missing members are created at a time.
// +kubebuilder:validation:Enum=Parallel;OrderedReady
type PodManagementPolicy string

const (
	// ParallelPodManagement creates all missing members in one pass.
	ParallelPodManagement PodManagementPolicy = "Parallel"
	// OrderedReadyPodManagement creates one member at a time, each Ready before the next.
	OrderedReadyPodManagement PodManagementPolicy = "OrderedReady"
)

// UpdateStrategyType specifies what starts the update of a member.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type UpdateStrategyType string

const (
	// RollingUpdateStrategy updates members automatically, within the limits of rollingUpdate.
	RollingUpdateStrategy UpdateStrategyType = "RollingUpdate"
	// OnDeleteStrategy uses the new template only for members created from now on.
	OnDeleteStrategy UpdateStrategyType = "OnDelete"
)

// InPlacePolicy specifies whether an update may change a running pod.
// +kubebuilder:validation:Enum=IfPossible;Never
type InPlacePolicy string

const (
	// InPlaceIfPossible changes images, labels, annotations and resources of the running pod, and
	// recreates it only for other changes.
	InPlaceIfPossible InPlacePolicy = "IfPossible"
	// InPlaceNever recreates the pod, with the same name and claims, for every change.
	InPlaceNever InPlacePolicy = "Never"
)

// RetentionPolicy specifies whether the claims of a removed member are kept.
// +kubebuilder:validation:Enum=Retain;Delete
type RetentionPolicy string

const (
	// RetainClaims keeps the claims, labelled with the reason. They are never attached again.
	RetainClaims RetentionPolicy = "Retain"
	// DeleteClaims deletes the claims and with them, by the usual reclaim policy, the data.
	DeleteClaims RetentionPolicy = "Delete"
)

// EvictionPolicy specifies the effect of an eviction through the API on a member.
// +kubebuilder:validation:Enum=Replace;Keep;ReplaceFirst
type EvictionPolicy string

const (
	// EvictionReplaces treats an evicted member as lost.
	EvictionReplaces EvictionPolicy = "Replace"
	// EvictionKeeps recreates the evicted member with the same name and claims.
	EvictionKeeps EvictionPolicy = "Keep"
	// EvictionReplacesFirst refuses evictions, and replaces the members on a cordoned Node, each
	// after a new member is available.
	EvictionReplacesFirst EvictionPolicy = "ReplaceFirst"
)

// NoneReadyPolicy specifies how lost members are handled while no member of the set is Ready.
// +kubebuilder:validation:Enum=Hold;Replace
type NoneReadyPolicy string

const (
	// NoneReadyHolds keeps them: they are recreated on their claims when possible.
	NoneReadyHolds NoneReadyPolicy = "Hold"
	// NoneReadyReplaces replaces them as usual.
	NoneReadyReplaces NoneReadyPolicy = "Replace"
)

// StatefulClusterSpec is the desired state. Its max size is 256 KiB.
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec) || size(self.template.spec.containers) <= 32",fieldPath=".template.spec.containers",message="there may be at most 32; remove the others"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec) || !has(self.template.spec.initContainers) || size(self.template.spec.initContainers) <= 32",fieldPath=".template.spec.initContainers",message="there may be at most 32; remove the others"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec) || !has(self.template.spec.volumes) || size(self.template.spec.volumes) <= 128",fieldPath=".template.spec.volumes",message="there may be at most 128; remove the others"
// +kubebuilder:validation:XValidation:rule="!has(self.template.metadata) || !has(self.template.metadata.labels) || size(self.template.metadata.labels) <= 64",fieldPath=".template.metadata.labels",message="there may be at most 64; remove the others"
// +kubebuilder:validation:XValidation:rule="!has(self.template.metadata) || !has(self.template.metadata.annotations) || size(self.template.metadata.annotations) <= 64",fieldPath=".template.metadata.annotations",message="there may be at most 64; remove the others"
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && self.selector == oldSelf.selector",message="selector is immutable; delete the StatefulCluster (its claims stay under the Retain policy) and create another"
type StatefulClusterSpec struct {
	// Problem is why the other fields are empty: the stored spec does not decode or is too large.
	// "" if there is no problem. It is neither sent nor stored.
	Problem string `json:"-"`

	// Replicas is the number of members wanted. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"},order=1
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector must match the labels of the template, and is immutable. It is the selector for
	// /scale and Services. Membership is determined by the owner of a pod, never by its labels. Max
	// 32 labels, and 32 expressions with 32 values each.
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",fieldPath=".matchLabels",message="there may be at most 32; remove the others"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32 && self.matchExpressions.all(e, !has(e.values) || size(e.values) <= 32)",fieldPath=".matchExpressions",message="there may be at most 32, each of at most 32 values; remove the others"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Pod"},order=2
	Selector *metav1.LabelSelector `json:"selector"`

	// Template is the pod template of every member. If it has no labels, it gets the matchLabels of
	// the selector.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod template",order=3
	Template corev1.PodTemplateSpec `json:"template"`

	// VolumeClaimTemplates are the claims of every member. Each is mounted as the volume of its
	// name. Increasing the requested storage expands the existing claims; nothing else may change.
	// Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Volume claim templates",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"},order=4
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// ServiceName is a headless Service that the user creates for the set. With it every pod has a
	// hostname and a subdomain, so that <pod>.<service> resolves. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service name",xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"},order=5
	ServiceName string `json:"serviceName,omitempty"`

	// PodManagementPolicy is Parallel (all missing members at once) or
	// OrderedReady (one at a time, each Ready before the next). Defaults to Parallel.
	// +optional
	// +kubebuilder:default=Parallel
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod management policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Parallel","urn:alm:descriptor:com.tectonic.ui:select:OrderedReady"},order=6
	PodManagementPolicy PodManagementPolicy `json:"podManagementPolicy,omitempty"`

	// UpdateStrategy specifies how a changed template is rolled out to the members.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update strategy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"},order=7
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`

	// MinReadySeconds is the number of seconds for which a member must be Ready to be available.
	// Defaults to 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Minimum ready seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=8
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// RevisionHistoryLimit is the number of old revisions to keep. Fewer are kept if they exceed 2
	// MiB in total. Defaults to 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Revision history limit",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=9
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// PersistentVolumeClaimRetentionPolicy specifies whether the claims of removed members are
	// kept.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Claim retention policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"},order=10
	PersistentVolumeClaimRetentionPolicy ClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// Replacement specifies when a member is lost, and how many members may be replaced at the same
	// time.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replacement",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"},order=11
	Replacement Replacement `json:"replacement,omitempty"`

	// DeletionProtection makes the API server refuse the deletion of this object until it
	// is set to false. The deletion of the namespace is not refused. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion protection",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=90
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// UpdateStrategy specifies how a changed template is rolled out to the members.
type UpdateStrategy struct {
	// Type is RollingUpdate or OnDelete. Defaults to RollingUpdate.
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:RollingUpdate","urn:alm:descriptor:com.tectonic.ui:select:OnDelete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	Type UpdateStrategyType `json:"type,omitempty"`

	// RollingUpdate has the limits for type RollingUpdate.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Rolling update",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy","urn:alm:descriptor:com.tectonic.ui:fieldDependency:updateStrategy.type:RollingUpdate"}
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`

	// InPlace is IfPossible or Never. In place, images, labels and annotations are patched on the
	// running pod, and resources through its resize subresource; name, UID, node and claims stay.
	// Any other change recreates the pod with the same name and claims. Defaults to IfPossible.
	// +optional
	// +kubebuilder:default=IfPossible
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="In place",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:IfPossible","urn:alm:descriptor:com.tectonic.ui:select:Never","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy","urn:alm:descriptor:com.tectonic.ui:fieldDependency:updateStrategy.type:RollingUpdate"}
	InPlace InPlacePolicy `json:"inPlace,omitempty"`
}

// RollingUpdate has the limits of a rolling update.
type RollingUpdate struct {
	// MaxUnavailable is the max number or percentage of members (rounded up) that may be
	// unavailable during the update. Defaults to 1; may be 0 only with a maxSurge.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable must be a number of 0 or more, or a percentage from 0% to 100%"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 20000",message="maxUnavailable may be at most 20000, the max size of a set; lower it, or use a percentage"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max unavailable",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy","urn:alm:descriptor:com.tectonic.ui:fieldDependency:updateStrategy.type:RollingUpdate"}
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MaxSurge is the max number or percentage of members (rounded up) that may be added in the new
	// revision, with new names and claims, while the same number of old members is retired.
	// Defaults to 0: names are kept.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxSurge must be a number of 0 or more, or a percentage from 0% to 100%"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 20000",message="maxSurge may be at most 20000, the max size of a set; lower it, or use a percentage"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max surge",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy","urn:alm:descriptor:com.tectonic.ui:fieldDependency:updateStrategy.type:RollingUpdate"}
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// Partition is the number of members that stay at the current revision. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Partition",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy","urn:alm:descriptor:com.tectonic.ui:fieldDependency:updateStrategy.type:RollingUpdate"}
	Partition int32 `json:"partition,omitempty"`
}

// ClaimRetentionPolicy specifies whether the claims of removed members are kept.
type ClaimRetentionPolicy struct {
	// WhenDeleted applies when the StatefulCluster is deleted. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When deleted",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"}
	WhenDeleted RetentionPolicy `json:"whenDeleted,omitempty"`

	// WhenScaled applies when a member is retired by a scale-down or by an update with a surge.
	// Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When scaled",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"}
	WhenScaled RetentionPolicy `json:"whenScaled,omitempty"`

	// WhenLost applies when a member is lost. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When lost",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"}
	WhenLost RetentionPolicy `json:"whenLost,omitempty"`
}

// Replacement specifies when a member is lost, and how many members may be replaced at the same
// time.
type Replacement struct {
	// NodeLostSeconds is the number of seconds for which the Ready condition of the member's Node
	// must be False or Unknown. A Node with the taint node.kubernetes.io/out-of-service is lost at
	// once, and a missing Node after 40 seconds. Defaults to 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Node lost seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"}
	NodeLostSeconds *int32 `json:"nodeLostSeconds,omitempty"`

	// UnreadySeconds is the number of seconds for which a member that was once Ready must be not
	// Ready; 0 means never. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Unready seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"}
	UnreadySeconds *int32 `json:"unreadySeconds,omitempty"`

	// StartupSeconds is the max number of seconds between the scheduling of a member and its first
	// Ready; 0 means unlimited. Defaults to 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Startup seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"}
	StartupSeconds *int32 `json:"startupSeconds,omitempty"`

	// PendingSeconds is the max number of seconds for which a member may be unschedulable; 0 means
	// unlimited. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pending seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"}
	PendingSeconds *int32 `json:"pendingSeconds,omitempty"`

	// OnEviction specifies the effect of an eviction through the API (a drain). Replace: the member
	// is lost. Keep: the member is recreated with the same name and claims, for sets whose volumes
	// can move. ReplaceFirst: evictions of Ready members are refused. When a Node is cordoned, new
	// members are created, maxSurge at a time and at least 1, and a member on that Node is retired
	// when one more than replicas is available, so that a drain finds no member. Defaults to
	// Replace.
	// +optional
	// +kubebuilder:default=Replace
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On eviction",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Replace","urn:alm:descriptor:com.tectonic.ui:select:Keep","urn:alm:descriptor:com.tectonic.ui:select:ReplaceFirst","urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"}
	OnEviction EvictionPolicy `json:"onEviction,omitempty"`

	// WhenNoneReady specifies how lost members are handled while no member of the set is Ready, for
	// example after a power outage, and always in a set with one member. Hold: a member that may
	// have data on claims is not replaced, and no claim is set aside; members whose pods ended are
	// recreated on their claims. Replace: they are replaced by empty members as usual. The taint
	// node.kubernetes.io/out-of-service and deletions by users still count as losses. Defaults to
	// Hold.
	// +optional
	// +kubebuilder:default=Hold
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When none is ready",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Hold","urn:alm:descriptor:com.tectonic.ui:select:Replace","urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"}
	WhenNoneReady NoneReadyPolicy `json:"whenNoneReady,omitempty"`

	// MaxConcurrent is the max number or percentage of members (rounded down, at least 1) that may
	// be in replacement at the same time. It is also the maxUnavailable of the set's
	// PodDisruptionBudget, unless onEviction is ReplaceFirst. Defaults to 25%.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent must be a number of 1 or more, or a percentage from 1% to 100%"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 20000",message="maxConcurrent may be at most 20000, the max size of a set; lower it, or use a percentage"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max concurrent",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:replacement"}
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`
}

// StatefulCluster is a set of stateful pods without an order, in which each name is used only once.
// A member is a pod with its claims. When a member is lost, it is replaced at once by a new member
// with a new name and new claims, and the lost member is never recreated. The same name always
// means the same data.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=stc,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Members wanted"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Members that are Ready"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,description="Members at the revision of the spec"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Members Ready for minReadySeconds"
// +kubebuilder:printcolumn:name="Lost",type=integer,JSONPath=`.status.lostReplicas`,description="Members lost and not yet replaced"
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.spec.template.spec.containers[0].image`,description="Image of the first container of the template"
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.updateRevision`,description="Revision of the template"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +operator-sdk:csv:customresourcedefinitions:displayName="Stateful Cluster",resources={{Pod,v1,""},{PersistentVolumeClaim,v1,""},{ControllerRevision,v1,""},{PodDisruptionBudget,v1,""},{Event,v1,""}}
type StatefulCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec StatefulClusterSpec `json:"spec"`
	// Status is the observed state. observedGeneration is -1 until the operator has observed the
	// object, so that tools do not regard a new object as ready.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status StatefulClusterStatus `json:"status,omitempty"`
}

// StatefulClusterList is a list of StatefulClusters.
//
// +kubebuilder:object:root=true
type StatefulClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulCluster `json:"items"`
}
