package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GateMode says how a program is held back until it is its pod's turn.
// +kubebuilder:validation:Enum=Auto;Binary;Script;Init
type GateMode string

const (
	// GateAuto is Binary for a pod whose program can wait in its container,
	// and Init for any other.
	GateAuto GateMode = "Auto"
	// GateBinary starts a small static program in the program's container,
	// which waits and then becomes the program.
	GateBinary GateMode = "Binary"
	// GateScript does the same with a shell script.
	GateScript GateMode = "Script"
	// GateInit waits in an init container, so that nothing of the pod runs.
	GateInit GateMode = "Init"
)

// TimeoutPolicy says what happens when a handover takes too long.
// +kubebuilder:validation:Enum=Wait;DeleteOld
type TimeoutPolicy string

const (
	// TimeoutWaits says so and waits on.
	TimeoutWaits TimeoutPolicy = "Wait"
	// TimeoutDeletesOld deletes the old pod, with its grace period.
	TimeoutDeletesOld TimeoutPolicy = "DeleteOld"
)

// EvictionPolicy says what happens to the pod that runs when its Node is cordoned, and its
// eviction is asked for.
// +kubebuilder:validation:Enum=Replace;ReplaceFirst
type EvictionPolicy string

const (
	// EvictionReplaces lets the pod be evicted. Its owner makes another one then.
	EvictionReplaces EvictionPolicy = "Replace"
	// EvictionReplacesFirst keeps the pod until another one waits at its gate on a Node
	// that is not cordoned.
	EvictionReplacesFirst EvictionPolicy = "ReplaceFirst"
)

// StatefulSingletonSpec is what the user wants.
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && self.selector == oldSelf.selector",message="selector is immutable; delete the StatefulSingleton (the program that runs is not stopped) and create another"
type StatefulSingletonSpec struct {
	// Problem is why the other fields are empty: the spec that is stored does not decode, or it is
	// too large. "" if neither is. It is neither sent nor stored.
	Problem string `json:"-"`

	// Selector says which pods of this namespace are the singleton: of all that
	// match, at most one runs its program. Immutable. No pod may match the
	// selectors of two StatefulSingletons. At most 32 labels and 32
	// expressions, of 32 values each. Take a label that the pods of the
	// application have and no others, as in matchLabels: {app: my-app}.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="say which labels the pods have, for example matchLabels: {app: my-app}; an empty selector would match every pod"
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || !has(self.matchExpressions) || size(self.matchExpressions) == 0 || self.matchExpressions.exists(e, e.operator == 'In')",message="say which pods are meant by matchLabels, or by an expression In, for example matchLabels: {app: my-app}; an object that only says which are not meant, or that a label is there, would match the pods of others"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.all(k, size(k) <= 317)",message="no label of a pod is so long: a key has at most 317 characters, with its prefix"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator == 'In' || e.operator == 'NotIn' ? has(e.values) && size(e.values) > 0 : (e.operator == 'Exists' || e.operator == 'DoesNotExist') && (!has(e.values) || size(e.values) == 0))",message="an expression is In or NotIn with values, or Exists or DoesNotExist without"
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.all(k, !k.startsWith('apps.statefulsingleton.com/'))) && (!has(self.matchExpressions) || self.matchExpressions.all(e, !e.key.startsWith('apps.statefulsingleton.com/')))",message="labels that begin with apps.statefulsingleton.com/ are put on pods by the operator; select by a label of the application"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Pod"},order=1
	Selector *metav1.LabelSelector `json:"selector"`

	// MaxTransitionTime is for how many seconds a handover may take, from the
	// moment that a pod waits for another to stop. Then onTimeout applies, and
	// the phase is Failed until the handover is done. A waiting pod never
	// starts because of it. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max transition time",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=2
	MaxTransitionTime *int32 `json:"maxTransitionTime,omitempty"`

	// TerminationGracePeriod is the least terminationGracePeriodSeconds that pods
	// get when they are created; a longer one of their own is kept, see
	// respectPodGracePeriod. 0 or less leaves the pod's own. At most 31536000, a
	// year. Defaults to 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:XValidation:rule="self <= 31536000",message="at most 31536000 seconds, a year: the next pod waits for as long as the one before takes to stop; 0 leaves what the pods say themselves"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Termination grace period",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=3
	TerminationGracePeriod *int64 `json:"terminationGracePeriod,omitempty"`

	// RespectPodGracePeriod keeps a pod's own terminationGracePeriodSeconds
	// where it is longer than terminationGracePeriod. False shortens that of pods
	// whose author allows it, by annotation
	// apps.statefulsingleton.com/shorten-grace-period=true in their template.
	// Defaults to true.
	// +optional
	// +kubebuilder:default=true
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Respect pod grace period",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=4
	RespectPodGracePeriod *bool `json:"respectPodGracePeriod,omitempty"`

	// GateMode says how a program is held back, in pods created from now on.
	//
	// Binary: the program's container starts a small static program, which
	// waits and then becomes the program; its arguments are passed on untouched.
	// Fastest. The pod's init containers and preStop hooks are not held back.
	//
	// Script: the same with a shell script, for images with a shell. It comes out of
	// the operator's image; ConfigMap statefulsingleton-wrapper has a copy to read.
	//
	// Init: an init container waits, so that nothing of the pod runs, not even
	// its own init containers, probes and hooks; its containers are untouched.
	//
	// Auto: Binary for a pod whose program can wait in its container, else Init.
	// It can if it says its command (the image's entrypoint is not known), and
	// nothing would end its container while it waits: a startup probe, a
	// postStart hook, or a liveness probe that relies on an initial delay.
	// Defaults to Auto.
	// +optional
	// +kubebuilder:default=Auto
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Gate mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Auto","urn:alm:descriptor:com.tectonic.ui:select:Binary","urn:alm:descriptor:com.tectonic.ui:select:Script","urn:alm:descriptor:com.tectonic.ui:select:Init"},order=5
	GateMode GateMode `json:"gateMode,omitempty"`

	// Containers names the containers that are the program, so that those of a
	// mesh or of a log shipper need not wait. A pod that lacks one of them waits
	// as a whole, as in Init mode, and a condition says so. In Init mode the whole
	// pod waits, and this is ignored. Defaults to all of the pod's containers.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!('status-sidecar' in self)",message="status-sidecar is the operator's own container and not the program"
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Containers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"},order=6
	Containers []string `json:"containers,omitempty"`

	// StatusSidecar adds the container status-sidecar in which `gate status`
	// says where the pod stands. Script mode has it anyway. A handover then
	// takes up to half a second more. Not added to pods that are to end by
	// themselves (restartPolicy Never or OnFailure). Defaults to false.
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Status sidecar",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=7
	StatusSidecar *bool `json:"statusSidecar,omitempty"`

	// OnTimeout says what happens after maxTransitionTime. Wait: a Warning event
	// and a condition. DeleteOld: the pod that is waited for is deleted too,
	// with its grace period and never by force, if it was created under this
	// object. Defaults to Wait.
	// +optional
	// +kubebuilder:default=Wait
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On timeout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Wait","urn:alm:descriptor:com.tectonic.ui:select:DeleteOld"},order=8
	OnTimeout TimeoutPolicy `json:"onTimeout,omitempty"`

	// Release has all waiting pods start at once, together, when the StatefulSingleton is
	// deleted, as annotation apps.statefulsingleton.com/release-now does. status.orders says
	// what became of it. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Release",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:release","urn:alm:descriptor:com.tectonic.ui:advanced"},order=20
	Release *ReleaseOrder `json:"release,omitempty"`

	// OnEviction says what a drain does to the pod that runs.
	//
	// Replace: it is evicted, and its owner makes another one then.
	//
	// ReplaceFirst: when its Node is cordoned, another pod is made on another Node, and
	// comes as far as its gate; then the old one is deleted, and the program starts there.
	// Until then a PodDisruptionBudget refuses its eviction, with the operator down too. It
	// holds for pods of a Deployment whose strategy is RollingUpdate with a surge, and which
	// could not start again on a cordoned Node; condition Degraded names any other. No
	// other PodDisruptionBudget may select these pods. Defaults to Replace.
	// +optional
	// +kubebuilder:default=Replace
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On eviction",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Replace","urn:alm:descriptor:com.tectonic.ui:select:ReplaceFirst"},order=9
	OnEviction EvictionPolicy `json:"onEviction,omitempty"`

	// DeletionProtection makes the API server refuse the deletion of this object until it
	// is set to false. The deletion of the namespace is not refused. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion protection",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=90
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// StatefulSingleton lets at most one of the pods that match its selector run
// its program, at every instant; when that one has stopped, the next starts
// within a second. It works on the pods of ordinary Deployments and
// StatefulSets: they are held back by a gate that is put into them when they are
// created, until it is their turn.
//
// It does not hold for a program that detaches from its container, for a kubelet
// that says a container has stopped when it has not, for a Node that is tainted
// node.kubernetes.io/out-of-service or deleted while its machine runs, and for
// pods whose finalizer was removed by hand.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ssn,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="Running, Transitioning or Failed"
// +kubebuilder:printcolumn:name="Active Pod",type=string,JSONPath=`.status.activePod`,description="The pod that may run its program"
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waitingCount`,description="Pods that wait for their turn"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether it is as its spec says, and nothing is left to do"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Condition Available"
// +kubebuilder:printcolumn:name="Node",type=string,priority=1,JSONPath=`.status.holder.node`,description="The node of the pod that may run its program"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name may have at most 63 characters: pods carry it as the value of a label"
// +operator-sdk:csv:customresourcedefinitions:displayName="Stateful Singleton",resources={{Pod,v1,""},{ConfigMap,v1,""},{PodDisruptionBudget,v1,""},{Event,v1,""}}
type StatefulSingleton struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	Spec StatefulSingletonSpec `json:"spec"`
	// Status is what the operator sees. Until it has looked, observedGeneration is -1, so
	// that no tool takes an object for ready that nobody has looked at.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status StatefulSingletonStatus `json:"status,omitempty"`
}

// StatefulSingletonList is a list of StatefulSingletons.
//
// +kubebuilder:object:root=true
type StatefulSingletonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulSingleton `json:"items"`
}
