package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a time span: a number of seconds ("8"), or numbers with units in this order: Y (365
// days), M (30 days), D, then, after an optional T, the units of Go: h, m, s, ms, us, ns, which may
// have fractions. Examples are "15m", "1D2h" and "500ms". Zero means the default of the field.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)?)$') && size(self) > 0",message="is not a duration; use a format like 30s, 15m, 1h30m, 1D2h or 500ms, or a number of seconds like 8"
type Duration string

// Seeding specifies how many members must respond before the newest copy is chosen.
// +kubebuilder:validation:Enum=All;Quorum
type Seeding string

const (
	// SeedingAll waits until every wanted member has reported its sequence.
	SeedingAll Seeding = "All"
	// SeedingQuorum waits until a majority has, and the newest copy ever recorded is among them.
	SeedingQuorum Seeding = "Quorum"
)

// ReplicatedStatefulSetSpec is the desired state. Its max size is 256 KiB.
// +kubebuilder:validation:XValidation:rule="!has(self.primaries) || !has(self.replicas) || self.replicas == 0 || self.primaries <= self.replicas",fieldPath=".primaries",message="may not be more than replicas; lower it, or remove it to use replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.primaries) || !has(self.replicas) || self.replicas == 0 || self.primaries > 0",fieldPath=".primaries",message="may be 0 only with replicas 0; to stop the set, set replicas to 0 and keep primaries"
// +kubebuilder:validation:XValidation:rule="!has(self.secrets) || !has(self.pod.volumes) || self.pod.volumes.all(v, self.secrets.all(s, v.name != 'secret-' + s))",fieldPath=".pod.volumes",message="a volume has the name secret-<name> of a volume for spec.secrets; rename it"
// +kubebuilder:validation:XValidation:rule="has(self.application) || (has(self.pod.commands) && 'sequence' in self.pod.commands)",fieldPath=".pod.commands",message="sequence is missing; add the command that prints the data version of a member, or set spec.application"
// +kubebuilder:validation:XValidation:rule="has(self.application) || (has(self.pod.commands) && 'status' in self.pod.commands)",fieldPath=".pod.commands",message="status is missing; add the command that reports with its exit code whether a member runs, or set spec.application"
// +kubebuilder:validation:XValidation:rule="has(self.application) || (has(self.pod.commands) && 'stop' in self.pod.commands)",fieldPath=".pod.commands",message="stop is missing; add the command that stops a member, or set spec.application"
// +kubebuilder:validation:XValidation:rule="has(self.application) || (has(self.pod.commands) && 'primary' in self.pod.commands)",fieldPath=".pod.commands",message="primary is missing; add the command that starts a member as primary, or set spec.application"
type ReplicatedStatefulSetSpec struct {
	// Problem is why the other fields are empty: the stored spec does not decode or is too large.
	// "" if there is no problem. It is neither sent nor stored.
	Problem string `json:"-"`

	// Replicas is the number of members wanted. 0 stops the set in order and keeps its data. With 1
	// there is no failover, and with 2 no majority is left when one is lost. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"},order=1
	Replicas *int32 `json:"replicas,omitempty"`

	// Primaries is the number of primary members, from 1 to replicas. The others are secondaries,
	// or idle if there is no command secondary. Ignored while replicas is 0. Defaults to replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Primaries",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=2
	Primaries *int32 `json:"primaries,omitempty"`

	// Pod specifies the pods of the members.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"},order=3
	Pod PodPolicy `json:"pod"`

	// ReconcileInterval is the time between two checks of members without any event. Events are
	// handled at once. Min 100 ms, max one day. Defaults to 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Reconcile interval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=4
	ReconcileInterval Duration `json:"reconcileInterval,omitempty"`

	// Paused stops the operator from running commands and from changing the number of pods. The
	// application continues to run. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Paused",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=5
	Paused bool `json:"paused,omitempty"`

	// Seeding specifies when the newest copy may be chosen and started first. All: when every
	// wanted member has responded. Quorum: when a majority has, and the newest copy ever recorded
	// is among them. Defaults to All.
	// +optional
	// +kubebuilder:default=All
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Seeding",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:All","urn:alm:descriptor:com.tectonic.ui:select:Quorum"},order=6
	Seeding Seeding `json:"seeding,omitempty"`

	// FailureThreshold is the number of failed starts and stops of a member within failureWindow
	// after which its pod is deleted and recreated on the same data. Defaults to 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failure threshold",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=7
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`

	// FailureWindow is how long a failed start or stop counts. Max 30 days. Defaults to 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failure window",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"},order=8
	FailureWindow Duration `json:"failureWindow,omitempty"`

	// ServicePorts are the ports of the three Services <name>-svc (all members), <name>-primary and
	// <name>-active (members that run). Two or more ports need names. Defaults to one port, dummy,
	// 12345.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.nodePort) || p.nodePort == 0)",message="these Services have no node ports; create a separate Service that selects app: <name> and rss-active-member: \"true\""
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service ports",order=9
	ServicePorts []corev1.ServicePort `json:"servicePorts,omitempty"`

	// ServiceAccountName is the ServiceAccount of the pods. Defaults to default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service account",xDescriptors={"urn:alm:descriptor:io.kubernetes:ServiceAccount"},order=10
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Secrets are mounted read-only at /etc/rss/secrets/<name> in every
	// container. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=56
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",message="a volume secret-<name> is named after each: at most 56 lower-case letters, digits and hyphens, with no hyphen at either end"
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secrets",order=11
	Secrets []string `json:"secrets,omitempty"`

	// ImagePullSecrets are the secrets for the images of the pods. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image pull secrets",order=12
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Resources of the container in which commands run, if that container sets none. Defaults to
	// none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Resources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements"},order=13
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// NodeSelector of the pods. It is merged with pod.nodeSelector, which has precedence. Defaults
	// to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Node selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Node"},order=14
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Tolerations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"},order=15
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity of the pods; pod.antiAffinity adds to it. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Affinity",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"},order=16
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TLS names Secrets with certificates. A missing Secret is reported in a condition. Defaults to
	// none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="TLS",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"},order=17
	TLS *TLSPolicy `json:"TLS,omitempty"`

	// RuleSelector selects ConfigMaps of this namespace. When their data changes, the members are
	// recreated one at a time. Nothing is mounted. Max 32 labels, and 32 expressions with 32 values
	// each. It may select at most 100 ConfigMaps. Defaults to none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",fieldPath=".matchLabels",message="there may be at most 32; remove the others"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32 && self.matchExpressions.all(e, !has(e.values) || size(e.values) <= 32)",fieldPath=".matchExpressions",message="there may be at most 32, each of at most 32 values; remove the others"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Rule selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:ConfigMap","urn:alm:descriptor:com.tectonic.ui:advanced"},order=18
	RuleSelector *metav1.LabelSelector `json:"ruleSelector,omitempty"`

	// ChaosLevel above 0 sets the variables CHAOS_LEVEL (this value) and CHAOS_MODULO (20 minus
	// this value) in every container, so that commands can fail on purpose. Defaults to none.
	// +optional
	// +kubebuilder:validation:Maximum=20
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Chaos level",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=19
	ChaosLevel *int32 `json:"chaosLevel,omitempty"`

	// EvictionPolicy specifies whether a primary may be evicted, for example by kubectl drain.
	// Handover: only after another member has its role; a cordon of its Node already starts the
	// handover. Allow: like any other member. If all members are primary, or there is no command
	// secondary, no member can take the role, and Allow applies. Defaults to Handover.
	// +optional
	// +kubebuilder:default=Handover
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Eviction policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Handover","urn:alm:descriptor:com.tectonic.ui:select:Allow"},order=20
	EvictionPolicy EvictionPolicy `json:"evictionPolicy,omitempty"`

	// EvictionTimeout is how long the eviction of a primary on a cordoned Node is refused with
	// evictionPolicy Handover, or the eviction of any member while a primary is missing. After that
	// the eviction is allowed, even if no other member has the role. Max 30 days. Defaults to none:
	// until another member has the role.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Eviction timeout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=21
	EvictionTimeout Duration `json:"evictionTimeout,omitempty"`

	// PodDisruptionBudget configures the PodDisruptionBudgets that the operator creates. Defaults
	// to one member at a time.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod disruption budget",order=22
	PodDisruptionBudget *BudgetPolicy `json:"podDisruptionBudget,omitempty"`

	// Maintenance are the names of members that are parked for manual work. A parked member has no
	// role, no clients, and runs no commands except status and sequence, but its pod continues to
	// run. A primary hands its role over first. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.matches('^rss-[a-z]([-a-z0-9]*[a-z0-9])?-(0|[1-9][0-9]{0,2})$'))",message="the members of a set are named rss-<name of the set>-<ordinal from 0 to 999>; remove or correct the others"
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Maintenance",order=23
	Maintenance []string `json:"maintenance,omitempty"`

	// PersistentVolumeClaimRetentionPolicy specifies whether the claims of removed members are
	// kept. Defaults to Retain in all cases.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Claim retention policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"},order=24
	PersistentVolumeClaimRetentionPolicy *ClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// UpdateOnEnvChange recreates the members one at a time, the primaries last, when the data of a
	// ConfigMap or Secret changes that the pods use in env, envFrom or a volume, including those of
	// secrets and TLS. Setting it restarts nothing: only later changes count. At most 256 objects
	// are followed, with 8 MiB in total. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update on env change",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=25
	UpdateOnEnvChange bool `json:"updateOnEnvChange,omitempty"`

	// UpdateStrategy specifies how a changed template is rolled out to the members. Defaults to
	// recreating them, one at a time.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update strategy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"},order=26
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// SwitchoverTo makes a secondary primary in place of another member, like annotation
	// clusterlabs.org/switchover-to, once for each id. status.orders has the result. Defaults to
	// none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Switchover to",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:switchoverTo","urn:alm:descriptor:com.tectonic.ui:advanced"},order=27
	SwitchoverTo *MemberOrder `json:"switchoverTo,omitempty"`

	// SeedFrom starts this member first if no member is or may be primary, like annotation
	// clusterlabs.org/seed-from, once for each id. Data that only other members have is lost.
	// status.orders has the result. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Seed from",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:seedFrom","urn:alm:descriptor:com.tectonic.ui:advanced"},order=28
	SeedFrom *MemberOrder `json:"seedFrom,omitempty"`

	// Failover specifies how the next primary is chosen after the last one has stopped. Defaults to
	// the best secondary, when every running member has responded.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failover",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:failover","urn:alm:descriptor:com.tectonic.ui:advanced"},order=29
	Failover *FailoverPolicy `json:"failover,omitempty"`

	// MinReadySeconds is the number of seconds for which a member must be Ready in its role to be
	// available. An update waits until every member with the current template is available. Defaults
	// to 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Minimum ready seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=30
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Application runs a known application without commands of the user: PostgreSQL. The operator
	// fills all other fields that the application needs, unless they are set. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Application",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"},order=31
	Application *ApplicationPolicy `json:"application,omitempty"`

	// Fencing specifies what happens when the node of a primary cannot be reached. Defaults to mode
	// Proof.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Fencing",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:fencing"},order=32
	Fencing *FencingPolicy `json:"fencing,omitempty"`

	// DeletionProtection makes the API server refuse the deletion of this object until it is set to
	// false. The deletion of the namespace is not refused. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion protection",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=90
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// TLSPolicy names Secrets with certificates.
type TLSPolicy struct {
	// Static are Secrets that are maintained by others. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secrets of your own",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	Static *StaticTLS `json:"static,omitempty"`
}

// StaticTLS are Secrets that are maintained by others.
type StaticTLS struct {
	// Member are the Secrets of every member. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Of the members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	Member *MemberTLS `json:"member,omitempty"`

	// OperatorSecret is for clients of the members. It must exist, but is not mounted into the
	// pods. The operator does not use it, because it only communicates with members through
	// commands. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret for clients",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	OperatorSecret string `json:"operatorSecret,omitempty"`
}

// MemberTLS are the Secrets of every member.
type MemberTLS struct {
	// PeerSecret is mounted read-only at /etc/rss/tls/peer, for connections between members.
	// Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret between members",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	PeerSecret string `json:"peerSecret,omitempty"`

	// ServerSecret is mounted read-only at /etc/rss/tls/server, for connections of clients.
	// Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret towards clients",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	ServerSecret string `json:"serverSecret,omitempty"`
}

// ReplicatedStatefulSet runs a replicated application. The operator manages it only through a few
// commands. Pods start idle. The operator queries how new the data of each member is, and starts
// the newest copy first and then the others. It maintains the wanted number of primaries, and never
// allows two where one is wanted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=rss,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Members wanted"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Members whose application runs"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Condition Available"
// +kubebuilder:printcolumn:name="Primaries",type=integer,JSONPath=`.status.primaries`,description="Members that are primary"
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.members.primary[0]`,description="The first of the members that are primary"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Creating, Running, Paused or Failed"
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.spec.pod.containers[0].image`,description="Image of the first container of spec.pod"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must start with a letter and contain only lower-case letters, digits and hyphens, because Services are named after it"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48",message="the name may have at most 48 characters, because rss-<name>-<hash> is the value of a label of pods, with at most 63"
// +operator-sdk:csv:customresourcedefinitions:displayName="Replicated Stateful Set",resources={{StatefulSet,v1,""},{Pod,v1,""},{Service,v1,""},{PodDisruptionBudget,v1,""},{PersistentVolumeClaim,v1,""},{Event,v1,""}}
type ReplicatedStatefulSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec ReplicatedStatefulSetSpec `json:"spec"`
	// Status is the observed state. observedGeneration is -1 until the operator has observed the
	// object, so that tools do not regard a new object as ready.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ReplicatedStatefulSetStatus `json:"status,omitempty"`
}

// ReplicatedStatefulSetList is a list of ReplicatedStatefulSets.
//
// +kubebuilder:object:root=true
type ReplicatedStatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReplicatedStatefulSet `json:"items"`
}
