package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a time span: a number of seconds ("8"), or numbers with units in
// this order: Y (365 days), M (30 days), D, then, after an optional T, those of
// Go: h, m, s, ms, us, ns, where fractions may be. "15m", "1D2h" and "500ms" are
// right. A zero of any kind means the default of its field.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)?)$') && size(self) > 0",message="is no duration; write it like 30s, 15m, 1h30m, 1D2h or 500ms, or as a number of seconds like 8"
type Duration string

// Seeding says how many members must answer before the newest copy is chosen.
// +kubebuilder:validation:Enum=All;Quorum
type Seeding string

const (
	// SeedingAll waits until every wanted member has said how new its copy is.
	SeedingAll Seeding = "All"
	// SeedingQuorum waits until a majority has, and the newest copy ever
	// recorded is among them.
	SeedingQuorum Seeding = "Quorum"
)

// ReplicatedStatefulSetSpec is what the user wants. It has at most 256 KiB.
// +kubebuilder:validation:XValidation:rule="!has(self.primaries) || !has(self.replicas) || self.replicas == 0 || self.primaries <= self.replicas",fieldPath=".primaries",message="may not be more than replicas; lower it, or remove it so that it follows replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.primaries) || !has(self.replicas) || self.replicas == 0 || self.primaries > 0",fieldPath=".primaries",message="may be 0 only with replicas 0; to stop the set, set replicas to 0 and leave primaries"
// +kubebuilder:validation:XValidation:rule="!has(self.secrets) || !has(self.pod.volumes) || self.pod.volumes.all(v, self.secrets.all(s, v.name != 'secret-' + s))",fieldPath=".pod.volumes",message="a volume has the name secret-<name> that the volume of one of spec.secrets gets; rename it"
type ReplicatedStatefulSetSpec struct {
	// Problem is why the other fields are empty: the spec that is stored does not decode, or it is
	// too large. "" if neither is. It is neither sent nor stored.
	Problem string `json:"-"`

	// Replicas is the number of members wanted. 0 stops the set in order and
	// keeps its data. With 1 nobody can take over, and with 2 no majority is
	// left when one is lost. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"},order=1
	Replicas *int32 `json:"replicas,omitempty"`

	// Primaries is how many members are to be primary, from 1 to replicas. The
	// others are secondaries, or idle if there is no command secondary. Ignored
	// while replicas is 0. Defaults to replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Primaries",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=2
	Primaries *int32 `json:"primaries,omitempty"`

	// Pod is what every member runs.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"},order=3
	Pod PodPolicy `json:"pod"`

	// ReconcileInterval is the time between two looks at members of which no
	// event tells; events are acted on at once. Not below 100 ms, nor above a day.
	// Defaults to 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Reconcile interval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=4
	ReconcileInterval Duration `json:"reconcileInterval,omitempty"`

	// Paused keeps the operator from running any command and from changing the
	// number of pods. The application goes on. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Paused",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=5
	Paused bool `json:"paused,omitempty"`

	// Seeding says when the newest copy may be chosen and started first. All:
	// when every wanted member has answered. Quorum: when a majority has, and
	// the newest copy ever recorded is among them. Defaults to All.
	// +optional
	// +kubebuilder:default=All
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Seeding",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:All","urn:alm:descriptor:com.tectonic.ui:select:Quorum"},order=6
	Seeding Seeding `json:"seeding,omitempty"`

	// FailureThreshold is how many starts and stops of a member may fail within
	// failureWindow before its pod is deleted, and recreated on the same
	// data. Defaults to 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failure threshold",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=7
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`

	// FailureWindow is how long a failed start or stop counts, 30 days at most.
	// Defaults to 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failure window",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"},order=8
	FailureWindow Duration `json:"failureWindow,omitempty"`

	// ServicePorts are the ports of the three Services <name>-svc (all members),
	// <name>-primary and <name>-active (members that run). Two or more need
	// names. Defaults to one port, dummy, 12345.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.nodePort) || p.nodePort == 0)",message="these Services have no node ports; make a Service of your own that selects app: <name> and rss-active-member: \"true\""
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

	// ImagePullSecrets are for the images of the pods. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image pull secrets",order=12
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Resources are those of the container in which commands run, if it has none
	// of its own. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Resources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements"},order=13
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// NodeSelector is what the labels of the pods' Nodes must be, together with
	// pod.nodeSelector, which has the last word. Defaults to none.
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

	// TLS names Secrets with certificates. A missing one is a condition.
	// Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="TLS",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"},order=17
	TLS *TLSPolicy `json:"TLS,omitempty"`

	// RuleSelector selects ConfigMaps of this namespace. When what is in them
	// changes, the members are recreated one at a time. Nothing is mounted. It has
	// at most 32 labels and 32 expressions of 32 values, and may select 100
	// ConfigMaps. Defaults to none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",fieldPath=".matchLabels",message="there may be at most 32; remove the others"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32 && self.matchExpressions.all(e, !has(e.values) || size(e.values) <= 32)",fieldPath=".matchExpressions",message="there may be at most 32, each of at most 32 values; remove the others"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Rule selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:ConfigMap","urn:alm:descriptor:com.tectonic.ui:advanced"},order=18
	RuleSelector *metav1.LabelSelector `json:"ruleSelector,omitempty"`

	// ChaosLevel above 0 gives every container CHAOS_LEVEL, which is this, and
	// CHAOS_MODULO, which is 20 less this, so that the commands may fail on
	// purpose. Defaults to none.
	// +optional
	// +kubebuilder:validation:Maximum=20
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Chaos level",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=19
	ChaosLevel *int32 `json:"chaosLevel,omitempty"`

	// EvictionPolicy says whether a primary may be evicted, as kubectl drain does.
	// Handover: not before another member has its role; a cordon of its Node is
	// enough to begin. Allow: as any other member. Where all members are primary, or
	// there is no command secondary, no member can take a role, and it is Allow.
	// Defaults to Handover.
	// +optional
	// +kubebuilder:default=Handover
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Eviction policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Handover","urn:alm:descriptor:com.tectonic.ui:select:Allow"},order=20
	EvictionPolicy EvictionPolicy `json:"evictionPolicy,omitempty"`

	// EvictionTimeout is how long a primary whose Node is cordoned is kept with
	// evictionPolicy Handover, or a member while a primary is missing. After that it
	// may be evicted, although no other member has the role. At most 30 days. Defaults to none: until another has it.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Eviction timeout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"},order=21
	EvictionTimeout Duration `json:"evictionTimeout,omitempty"`

	// PodDisruptionBudget is about the PodDisruptionBudgets that the operator makes.
	// Defaults to one member at a time.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod disruption budget",order=22
	PodDisruptionBudget *BudgetPolicy `json:"podDisruptionBudget,omitempty"`

	// Maintenance are the names of members that are parked, so that a person can work on
	// them: such a member gets no role, no clients, and no command but status and sequence,
	// and its pod goes on. A primary hands its role over first. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.matches('^rss-[a-z]([-a-z0-9]*[a-z0-9])?-(0|[1-9][0-9]{0,2})$'))",message="the members of a set are named rss-<name of the set>-<ordinal from 0 to 999>; remove or correct the others"
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Maintenance",order=23
	Maintenance []string `json:"maintenance,omitempty"`

	// PersistentVolumeClaimRetentionPolicy says what becomes of the claims of members that
	// are no more. Defaults to Retain in all cases.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Claim retention policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"},order=24
	PersistentVolumeClaimRetentionPolicy *ClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// UpdateOnEnvChange recreates the members one at a time, the primaries last, when
	// what is in a ConfigMap or Secret changes that the pods use in env, envFrom or a
	// volume, those of secrets and TLS among them. What they hold when it is set is
	// where it begins: setting it restarts nothing. At most 256 are followed, with
	// 8 MiB in all. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update on env change",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=25
	UpdateOnEnvChange bool `json:"updateOnEnvChange,omitempty"`

	// UpdateStrategy says how a changed template reaches the members. Defaults to
	// recreating them, one at a time.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Update strategy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"},order=26
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// SwitchoverTo makes a secondary primary in place of another, as annotation
	// clusterlabs.org/switchover-to does, once for each id. status.orders says what became of
	// it. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Switchover to",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:switchoverTo","urn:alm:descriptor:com.tectonic.ui:advanced"},order=27
	SwitchoverTo *MemberOrder `json:"switchoverTo,omitempty"`

	// SeedFrom starts this member first where no member is primary or may be, as annotation
	// clusterlabs.org/seed-from does, once for each id. What only others have is lost.
	// status.orders says what became of it. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Seed from",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:seedFrom","urn:alm:descriptor:com.tectonic.ui:advanced"},order=28
	SeedFrom *MemberOrder `json:"seedFrom,omitempty"`

	// Failover says how the next primary is chosen after the last one has stopped. Defaults
	// to the best secondary, when every member that runs has answered.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Failover",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:failover","urn:alm:descriptor:com.tectonic.ui:advanced"},order=29
	Failover *FailoverPolicy `json:"failover,omitempty"`

	// DeletionProtection makes the API server refuse the deletion of this object until it
	// is set to false. The deletion of the namespace is not refused. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion protection",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=90
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// TLSPolicy names Secrets with certificates.
type TLSPolicy struct {
	// Static are Secrets that somebody else fills. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secrets of your own",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	Static *StaticTLS `json:"static,omitempty"`
}

// StaticTLS are Secrets that somebody else fills.
type StaticTLS struct {
	// Member are the Secrets that every member gets. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Of the members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	Member *MemberTLS `json:"member,omitempty"`

	// OperatorSecret is for clients of the members. It must exist; the pods do
	// not get it, and the operator speaks to members by commands only. Defaults
	// to none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret for clients",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	OperatorSecret string `json:"operatorSecret,omitempty"`
}

// MemberTLS are the Secrets that every member gets.
type MemberTLS struct {
	// PeerSecret is mounted read-only at /etc/rss/tls/peer, for what members say
	// to each other. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret between members",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	PeerSecret string `json:"peerSecret,omitempty"`

	// ServerSecret is mounted read-only at /etc/rss/tls/server, for what members
	// say to clients. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret towards clients",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldGroup:TLS"}
	ServerSecret string `json:"serverSecret,omitempty"`
}

// ReplicatedStatefulSet runs a replicated application, of which the operator
// knows nothing but a few commands. Its pods come up idle; the operator asks
// each how new its data is, starts the newest copy first and then the others,
// keeps the wanted number of primaries, and never has two where one is wanted.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must begin with a letter and go on with lower-case letters, digits and hyphens: Services are named after it"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48",message="the name may have at most 48 characters: pods carry rss-<name>-<hash> as the value of a label, which has at most 63"
// +operator-sdk:csv:customresourcedefinitions:displayName="Replicated Stateful Set",resources={{StatefulSet,v1,""},{Pod,v1,""},{Service,v1,""},{PodDisruptionBudget,v1,""},{PersistentVolumeClaim,v1,""},{Event,v1,""}}
type ReplicatedStatefulSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	Spec ReplicatedStatefulSetSpec `json:"spec"`
	// Status is what the operator sees. Until it has looked, observedGeneration is -1, so
	// that no tool takes an object for ready that nobody has looked at.
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
