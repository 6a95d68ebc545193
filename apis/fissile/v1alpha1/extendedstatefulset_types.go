package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ConfigTracking specifies how changes of ConfigMaps and Secrets are detected.
// +kubebuilder:validation:Enum=Index;OwnerReference
type ConfigTracking string

const (
	// TrackByIndex writes nothing on the user's ConfigMaps and Secrets.
	TrackByIndex ConfigTracking = "Index"
	// TrackByOwnerReference adds owner references to them, and a finalizer to the
	// ExtendedStatefulSet.
	TrackByOwnerReference ConfigTracking = "OwnerReference"
)

// Handover specifies how a new version replaces the old one.
// +kubebuilder:validation:Enum=Auto;Coexist;PerOrdinal
type Handover string

const (
	// HandoverAuto is Coexist without claim templates, and PerOrdinal otherwise.
	HandoverAuto Handover = "Auto"
	// HandoverCoexist runs both versions at the same time until the new one is good.
	HandoverCoexist Handover = "Coexist"
	// HandoverPerOrdinal stops an old pod, and starts the new one on its claims.
	HandoverPerOrdinal Handover = "PerOrdinal"
)

// OnFailure specifies the effect of a failed job.
// +kubebuilder:validation:Enum=Abort;Continue
type OnFailure string

const (
	// OnFailureAbort stops the upgrade, and rolls it back.
	OnFailureAbort OnFailure = "Abort"
	// OnFailureContinue continues as if the job had succeeded.
	OnFailureContinue OnFailure = "Continue"
)

// When specifies which pods must be good before a job runs.
// +kubebuilder:validation:Enum=AllPods;Canary;Both
type When string

const (
	// WhenAllPods runs the job when the new version has all its pods.
	WhenAllPods When = "AllPods"
	// WhenCanary runs the job when the first canaries are good.
	WhenCanary When = "Canary"
	// WhenBoth runs it both times, each as a separate Job.
	WhenBoth When = "Both"
)

// Approval specifies whether a new version must be approved before it takes over.
// +kubebuilder:validation:Enum=Automatic;Manual
type Approval string

const (
	// ApprovalAutomatic continues when the canaries are good.
	ApprovalAutomatic Approval = "Automatic"
	// ApprovalManual waits with good canaries until approvedRevision names them.
	ApprovalManual Approval = "Manual"
)

// ExtendedStatefulSetSpec is the desired state. The limits of replicas are rules of the schema,
// because the API server also applies them to /scale, and while the operator is down.
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.scaling.min) || !has(self.scaling.max) || self.scaling.min <= self.scaling.max",fieldPath=".scaling.min",message="may not be more than scaling.max; lower it, or raise max"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.scaling.oddOnly) || !self.scaling.oddOnly || !has(self.scaling.max) || self.scaling.max % 2 == 1 || (has(self.scaling.min) ? self.scaling.min != self.scaling.max : self.scaling.max > 0)",fieldPath=".scaling.oddOnly",message="there is no odd number from scaling.min to scaling.max; change one of them, or remove oddOnly"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.scaling.min) || !has(self.template.spec.replicas) || self.template.spec.replicas >= self.scaling.min",fieldPath=".template.spec.replicas",message="may not be less than scaling.min; take more replicas, or lower min first"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.scaling.max) || !has(self.template.spec.replicas) || self.template.spec.replicas <= self.scaling.max",fieldPath=".template.spec.replicas",message="may not be more than scaling.max; take fewer replicas, or raise max first"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.scaling.oddOnly) || !self.scaling.oddOnly || !has(self.template.spec.replicas) || self.template.spec.replicas % 2 == 1",fieldPath=".template.spec.replicas",message="scaling.oddOnly allows odd numbers only; take one more or one less, or remove oddOnly first"
// +kubebuilder:validation:XValidation:rule="!has(self.updateStrategy) || !has(self.updateStrategy.canaries) || !has(self.template.spec.replicas) || self.template.spec.replicas <= 0 || self.updateStrategy.canaries <= self.template.spec.replicas",fieldPath=".updateStrategy.canaries",message="may not be more than template.spec.replicas; lower canaries first, or take more replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.replicas) || self.template.spec.replicas <= 1000",fieldPath=".template.spec.replicas",message="may be at most 1000; take fewer replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.replicas) || !has(self.zones) || self.template.spec.replicas * size(self.zones) <= 2000",fieldPath=".template.spec.replicas",message="times the number of zones may be at most 2000; take fewer replicas or fewer zones"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.volumeClaimTemplates) || size(self.template.spec.volumeClaimTemplates) <= 16",fieldPath=".template.spec.volumeClaimTemplates",message="may be at most 16; take fewer claim templates"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.replicas) || !has(self.template.spec.volumeClaimTemplates) || self.template.spec.replicas * size(self.template.spec.volumeClaimTemplates) * (has(self.zones) && size(self.zones) > 0 ? size(self.zones) : 1) <= 4000",fieldPath=".template.spec.replicas",message="times the number of zones and of claim templates may be at most 4000; take fewer replicas, zones or claim templates"
type ExtendedStatefulSetSpec struct {
	// Problem is why the other fields are empty: the stored spec does not decode or is too large.
	// "" if there is no problem. It is neither sent nor stored.
	Problem string `json:"-"`

	// Template is an ordinary StatefulSet. Each change creates a new version, except for changes of
	// its replicas and of the sizes of its claims.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Template",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:template"},order=1
	Template StatefulSetTemplate `json:"template"`

	// Scaling limits template.spec.replicas. It applies to create, update and /scale. Defaults to
	// none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Scaling",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:scaling"},order=2
	Scaling *Scaling `json:"scaling,omitempty"`

	// UpdateOnEnvChange restarts the pods in a rolling update, without a new version, when a
	// ConfigMap or Secret that the template references changes. Defaults to false.
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update on env change",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=3
	UpdateOnEnvChange bool `json:"updateOnEnvChange,omitempty"`

	// ConfigTracking specifies how changes of ConfigMaps and Secrets are detected. Index writes
	// nothing to them. OwnerReference adds owner references to them and a finalizer to this object;
	// on OpenShift that needs rights that the operator does not have by default. Defaults to Index.
	// +optional
	// +kubebuilder:default=Index
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Config tracking",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Index","urn:alm:descriptor:com.tectonic.ui:select:OwnerReference","urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:fieldDependency:updateOnEnvChange:true"},order=4
	ConfigTracking ConfigTracking `json:"configTracking,omitempty"`

	// UpdateStrategy specifies how a new version replaces the old one.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update strategy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"},order=5
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`

	// Approval is Automatic or Manual. Automatic: a new version continues when its canaries are
	// good. Manual: it waits with good canaries until approvedRevision names it. A rollback needs
	// no approval. Defaults to Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Approval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Automatic","urn:alm:descriptor:com.tectonic.ui:select:Manual"},order=10
	Approval Approval `json:"approval,omitempty"`

	// ApprovedRevision is the revision that may continue after its canaries, as in
	// status.updateRevision. Approval Manual requires it. It has no effect if it is not the
	// revision of the present upgrade. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^v[1-9][0-9]{0,18}-[0-9a-f]{16}$')",message="must be a revision in the format of status.updateRevision, for example v2-0123456789abcdef"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Approved revision",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldDependency:approval:Manual"},order=11
	ApprovedRevision string `json:"approvedRevision,omitempty"`

	// Zones creates a separate StatefulSet with all replicas for each zone. Zones are upgraded one
	// after another, in this order. Each keeps its index when the list changes. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Zones",order=6
	Zones []string `json:"zones,omitempty"`

	// ZoneNodeLabel is the label of Nodes that has their zone. Defaults to
	// topology.kubernetes.io/zone.
	// +optional
	// +kubebuilder:default="topology.kubernetes.io/zone"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Zone node label",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"},order=7
	ZoneNodeLabel string `json:"zoneNodeLabel,omitempty"`

	// AZ is accepted and ignored; use zones. Defaults to none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Zone (ignored)",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	AZ *string `json:"az,omitempty"`

	// InjectReplicasEnv sets the variable REPLICAS in every container to the number of replicas in
	// a zone. Scaling then restarts the pods in a rolling update. Defaults to true.
	// +optional
	// +kubebuilder:default=true
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Inject replicas env",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=8
	InjectReplicasEnv *bool `json:"injectReplicasEnv,omitempty"`

	// ActivePassiveProbes are commands by the name of their container. A pod on which they succeed
	// has the label fissile.cloudfoundry.org/pod-active. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Active/passive probes",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"},order=9
	ActivePassiveProbes map[string]ActivePassiveProbe `json:"activePassiveProbes,omitempty"`

	// PodDisruptionBudget limits how many serving pods of a zone may be evicted at the same time.
	// Each zone has its own PodDisruptionBudget; without zones there is one. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod disruption budget",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:podDisruptionBudget","urn:alm:descriptor:com.tectonic.ui:advanced"},order=10
	PodDisruptionBudget *DisruptionBudget `json:"podDisruptionBudget,omitempty"`

	// DeletionProtection makes the API server refuse the deletion of this object until it
	// is set to false. The deletion of the namespace is not refused. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion protection",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=90
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// DisruptionBudget limits the evictions of a zone's pods. It has exactly one of both fields.
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) != has(self.maxUnavailable)",message="must have either minAvailable or maxUnavailable; set one of them"
type DisruptionBudget struct {
	// MinAvailable is the min number of pods, or percentage of template.spec.replicas (rounded up),
	// that must be available in a zone after an eviction. Defaults to none.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000 : self.matches('^(100|[1-9]?[0-9])%$')",message="minAvailable must be a number from 0 to 1000, or a percentage from 0% to 100%"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Min available",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:podDisruptionBudget"}
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// MaxUnavailable is the max number of pods, or percentage of template.spec.replicas (rounded
	// up), that may be unavailable in a zone after an eviction. 0 allows no evictions. Defaults to
	// none.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable must be a number from 0 to 1000, or a percentage from 0% to 100%"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max unavailable",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:podDisruptionBudget"}
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// StatefulSetTemplate is a StatefulSet without its status.
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || size(self.metadata.labels) <= 64",fieldPath=".metadata.labels",message="may be at most 64; take fewer labels"
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || size(self.metadata.annotations) <= 64",fieldPath=".metadata.annotations",message="may be at most 64; take fewer annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.selector) || !has(self.spec.selector.matchLabels) || size(self.spec.selector.matchLabels) <= 32",fieldPath=".spec.selector.matchLabels",message="may be at most 32; select by fewer labels"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.selector) || !has(self.spec.selector.matchExpressions) || size(self.spec.selector.matchExpressions) <= 32",fieldPath=".spec.selector.matchExpressions",message="may be at most 32; take fewer expressions"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.selector) || !has(self.spec.selector.matchExpressions) || self.spec.selector.matchExpressions.all(e, !has(e.values) || size(e.values) <= 64)",fieldPath=".spec.selector.matchExpressions",message="may have at most 64 values each; take fewer values"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.template.metadata) || !has(self.spec.template.metadata.labels) || size(self.spec.template.metadata.labels) <= 64",fieldPath=".spec.template.metadata.labels",message="may be at most 64; take fewer labels"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.template.metadata) || !has(self.spec.template.metadata.annotations) || size(self.spec.template.metadata.annotations) <= 64",fieldPath=".spec.template.metadata.annotations",message="may be at most 64; take fewer annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.template.spec) || !has(self.spec.template.spec.containers) || size(self.spec.template.spec.containers) <= 64",fieldPath=".spec.template.spec.containers",message="may be at most 64; take fewer containers"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.template.spec) || !has(self.spec.template.spec.initContainers) || size(self.spec.template.spec.initContainers) <= 64",fieldPath=".spec.template.spec.initContainers",message="may be at most 64; take fewer init containers"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.template.spec) || !has(self.spec.template.spec.volumes) || size(self.spec.template.spec.volumes) <= 256",fieldPath=".spec.template.spec.volumes",message="may be at most 256; take fewer volumes"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.template.spec) || !has(self.spec.template.spec.imagePullSecrets) || size(self.spec.template.spec.imagePullSecrets) <= 64",fieldPath=".spec.template.spec.imagePullSecrets",message="may be at most 64; take fewer Secrets"
type StatefulSetTemplate struct {
	// Metadata has labels and annotations for the StatefulSets. Defaults to none.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of apps/v1 StatefulSet. Replicas default to the smallest number that scaling
	// allows. Max 1000 replicas, and 2000 in all zones.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="StatefulSet spec",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:template"}
	Spec appsv1.StatefulSetSpec `json:"spec"`
}

// Scaling limits the number of replicas.
type Scaling struct {
	// Min is the smallest number of replicas. Defaults to none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Min",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:scaling"}
	Min *int32 `json:"min,omitempty"`

	// Max is the largest number of replicas. Defaults to none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:scaling"}
	Max *int32 `json:"max,omitempty"`

	// OddOnly allows only odd numbers. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Odd only",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:fieldGroup:scaling"}
	OddOnly bool `json:"oddOnly,omitempty"`
}

// UpdateStrategy specifies how a new version replaces the old one.
// +kubebuilder:validation:XValidation:rule="!has(self.preUpdateJob) || !has(self.preUpdateJob.when)",fieldPath=".preUpdateJob.when",message="is only for postUpdateJob: this job runs before the canaries are created; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.canaryWatchTime) || !has(self.updateWatchTime) || !self.canaryWatchTime.matches('^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$') || !self.updateWatchTime.matches('^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$') || duration(self.canaryWatchTime) <= duration(self.updateWatchTime)",fieldPath=".canaryWatchTime",message="may not be longer than updateWatchTime, which includes the canaries; shorten it, or lengthen updateWatchTime"
type UpdateStrategy struct {
	// Canaries is the number of pods of the new version that must be Ready for
	// template.spec.minReadySeconds before the new version takes over the rest. All of its pods
	// must be Ready that long before the old version is removed. Without minReadySeconds the time
	// is 10s, or half of canaryWatchTime if that is less. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Canaries",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	Canaries *int32 `json:"canaries,omitempty"`

	// RetryCount is the number of retries after a failed attempt before the version is rolled back
	// for good. Defaults to 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Retry count",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	RetryCount int32 `json:"retryCount,omitempty"`

	// UpdateNotReady starts an upgrade even if pods of the serving version are not Ready. Defaults
	// to false.
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update not ready",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	UpdateNotReady bool `json:"updateNotReady,omitempty"`

	// CanaryWatchTime is the max time until the canaries of a zone are good. After that the attempt
	// fails. Defaults to 5m.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$') || duration(self) > duration('0s')",message="must be more than 0, for example 5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$') || duration(self) <= duration('720h')",message="may be at most 720h; take a shorter time"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Canary watch time",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	CanaryWatchTime *metav1.Duration `json:"canaryWatchTime,omitempty"`

	// UpdateWatchTime is the max time of an attempt, with its jobs and all zones. After that it
	// fails. Defaults to 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$') || duration(self) > duration('0s')",message="must be more than 0, for example 5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$') || duration(self) <= duration('720h')",message="may be at most 720h; take a shorter time"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update watch time",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	UpdateWatchTime *metav1.Duration `json:"updateWatchTime,omitempty"`

	// Handover is Coexist (both versions run at the same time), PerOrdinal (an old pod stops, then
	// the new one starts on its claims) or Auto: Coexist without claim templates, and PerOrdinal
	// otherwise. With Coexist and ReadWriteMany claims, the two pods of an ordinal share them for a
	// while. Defaults to Auto.
	// +optional
	// +kubebuilder:default=Auto
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Handover",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Auto","urn:alm:descriptor:com.tectonic.ui:select:Coexist","urn:alm:descriptor:com.tectonic.ui:select:PerOrdinal","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	Handover Handover `json:"handover,omitempty"`

	// PreUpdateJob runs before the new version is created. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Job before the update",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	PreUpdateJob *UpdateJob `json:"preUpdateJob,omitempty"`

	// PostUpdateJob runs when the new version has all its pods, before the old one is removed, or
	// with the first canaries if its field when is set. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Job after the update",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	PostUpdateJob *UpdateJob `json:"postUpdateJob,omitempty"`
}

// UpdateJob is a Job before or after an upgrade. It runs at most once for each version and attempt.
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.labels) || size(self.metadata.labels) <= 64",fieldPath=".metadata.labels",message="may be at most 64; take fewer labels"
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.annotations) || size(self.metadata.annotations) <= 64",fieldPath=".metadata.annotations",message="may be at most 64; take fewer annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.parallelism) || self.spec.parallelism <= 100",fieldPath=".spec.parallelism",message="may be at most 100; take fewer pods at a time"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.completions) || self.spec.completions <= 1000",fieldPath=".spec.completions",message="may be at most 1000; take fewer completions"
type UpdateJob struct {
	// The metadata and spec of a Job. ttlSecondsAfterFinished and suspend are reserved for the
	// operator. The operator checks its template, because the schema does not.
	batchv1.JobTemplateSpec `json:",inline"`

	// Problem is why the template cannot be decoded; empty if it can. It is neither sent nor
	// stored.
	Problem string `json:"-"`

	// OnFailure is Abort or Continue. Defaults to Abort.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On failure",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Abort","urn:alm:descriptor:com.tectonic.ui:select:Continue","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// When is AllPods: postUpdateJob runs when the new version has all its pods; Canary: when its
	// first canaries are good, before more pods are created and before the approval; or Both. It is
	// not for preUpdateJob. Defaults to AllPods.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:AllPods","urn:alm:descriptor:com.tectonic.ui:select:Canary","urn:alm:descriptor:com.tectonic.ui:select:Both","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	When When `json:"when,omitempty"`
}

// ActivePassiveProbe determines whether the pod of a container is active.
// +kubebuilder:validation:XValidation:rule="!has(self.exec.command) || size(self.exec.command) <= 64",fieldPath=".exec.command",message="may be at most 64; take fewer arguments, or write a script"
type ActivePassiveProbe struct {
	// Exec is the command. The pod is active if it exits with 0.
	Exec *corev1.ExecAction `json:"exec"`

	// PeriodSeconds is the interval of the probe. Defaults to 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// TimeoutSeconds is the timeout of the probe, after which the pod is passive. The command runs
	// through the API server. Defaults to 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// SingleActive limits the label to one pod of all zones: another pod gets it only after it was
	// removed from the previous one. With several probes it is enough to set it in one of them.
	// Defaults to false.
	// +optional
	// +kubebuilder:default=false
	SingleActive bool `json:"singleActive,omitempty"`
}

// ExtendedStatefulSet is an ordinary StatefulSet template. It is upgraded by creating a whole new
// version in addition to the old one, on the same volumes. A bad version is rolled back
// automatically.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ests,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.template.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.template.spec.replicas`,description="Replicas wanted, in each zone"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Pods that serve and are Ready, in all zones"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Condition Available"
// +kubebuilder:printcolumn:name="Version",type=integer,JSONPath=`.status.currentVersion`,description="Version that serves"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="State of the upgrade"
// +kubebuilder:printcolumn:name="Stale",type=string,JSONPath=`.status.conditions[?(@.type=="Stale")].status`,description="Whether the version of the template was rolled back"
// +kubebuilder:printcolumn:name="Progress",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,description="Current operation, or the reason for waiting"
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.spec.template.spec.template.spec.containers[0].image`,description="Image of the first container of the template"
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.updateRevision`,description="Revision of the template, as spec.approvedRevision names it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +operator-sdk:csv:customresourcedefinitions:displayName="Extended Stateful Set",resources={{StatefulSet,v1,""},{Pod,v1,""},{Service,v1,""},{Job,v1,""},{PersistentVolumeClaim,v1,""},{Event,v1,""}}
type ExtendedStatefulSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec ExtendedStatefulSetSpec `json:"spec"`
	// Status is the observed state. observedGeneration is -1 until the operator has observed the
	// object, so that tools do not regard a new object as ready.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ExtendedStatefulSetStatus `json:"status,omitempty"`
}

// ExtendedStatefulSetList is a list of ExtendedStatefulSets.
//
// +kubebuilder:object:root=true
type ExtendedStatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExtendedStatefulSet `json:"items"`
}
