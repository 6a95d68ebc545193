package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GateMode specifies how a program is blocked until its pod gets the grant.
// +kubebuilder:validation:Enum=Auto;Binary;Script;Init
type GateMode string

const (
	// GateAuto is Binary for a pod whose program can wait in its container, and Init for any other.
	GateAuto GateMode = "Auto"
	// GateBinary starts a small static program in the program's container, which waits and then
	// executes the program.
	GateBinary GateMode = "Binary"
	// GateScript does the same with a shell script.
	GateScript GateMode = "Script"
	// GateInit waits in an init container, so that nothing else of the pod runs.
	GateInit GateMode = "Init"
)

// TimeoutPolicy specifies what happens when a handover takes too long.
// +kubebuilder:validation:Enum=Wait;DeleteOld
type TimeoutPolicy string

const (
	// TimeoutWaits reports it and continues to wait.
	TimeoutWaits TimeoutPolicy = "Wait"
	// TimeoutDeletesOld deletes the old pod, with its grace period.
	TimeoutDeletesOld TimeoutPolicy = "DeleteOld"
)

// EvictionPolicy specifies how an eviction of the active pod is handled, and a cordon of its Node.
// +kubebuilder:validation:Enum=Replace;ReplaceFirst
type EvictionPolicy string

const (
	// EvictionReplaces allows the eviction. The owner of the pod creates another one afterwards.
	EvictionReplaces EvictionPolicy = "Replace"
	// EvictionReplacesFirst keeps the pod until another one waits at its gate on a Node that is not
	// cordoned.
	EvictionReplacesFirst EvictionPolicy = "ReplaceFirst"
)

// CrashLoopPolicy specifies what happens when the program of the active pod ends again and again.
// +kubebuilder:validation:Enum=Restart;Handover
type CrashLoopPolicy string

const (
	// CrashLoopRestarts leaves the pod active. Its kubelet restarts the container.
	CrashLoopRestarts CrashLoopPolicy = "Restart"
	// CrashLoopHandsOver starts a waiting pod whose program was not in a crash loop.
	CrashLoopHandsOver CrashLoopPolicy = "Handover"
)

// StatefulSingletonSpec is the desired state.
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && self.selector == oldSelf.selector",message="selector is immutable; delete the StatefulSingleton (the running program is not stopped) and create another"
// +kubebuilder:validation:XValidation:rule="!has(self.fencing) || !has(self.fencing.mode) || self.fencing.mode != 'Lease' || !has(self.gateMode) || self.gateMode in ['Auto', 'Binary']",message="fencing.mode Lease requires gateMode Auto or Binary, because the agent waits in the container of the program"
// +kubebuilder:validation:XValidation:rule="!has(self.onCrashLoop) || self.onCrashLoop != 'Handover' || has(self.fencing) && has(self.fencing.mode) && self.fencing.mode == 'Lease'",message="onCrashLoop Handover requires fencing.mode Lease, because the kubelet restarts the container at any time; set fencing.mode to Lease, or onCrashLoop to Restart"
type StatefulSingletonSpec struct {
	// Problem is why the other fields are empty: the stored spec does not decode or is too large.
	// "" if there is no problem. It is neither sent nor stored.
	Problem string `json:"-"`

	// Selector selects the pods of the singleton in this namespace: at most one of the matching
	// pods runs its program. Immutable. No pod may match the selectors of two StatefulSingletons.
	// Max 32 labels, and 32 expressions with 32 values each. Use a label that only the pods of the
	// application have, for example matchLabels: {app: my-app}.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod"
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || !has(self.matchExpressions) || size(self.matchExpressions) == 0 || self.matchExpressions.exists(e, e.operator == 'In')",message="select pods by matchLabels or by an expression In, for example matchLabels: {app: my-app}; a selector with only NotIn, Exists or DoesNotExist would match unrelated pods"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.all(k, size(k) <= 317)",message="label keys have at most 317 characters, including the prefix"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator == 'In' || e.operator == 'NotIn' ? has(e.values) && size(e.values) > 0 : (e.operator == 'Exists' || e.operator == 'DoesNotExist') && (!has(e.values) || size(e.values) == 0))",message="operators In and NotIn require values; Exists and DoesNotExist allow none"
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.all(k, !k.startsWith('apps.statefulsingleton.com/'))) && (!has(self.matchExpressions) || self.matchExpressions.all(e, !e.key.startsWith('apps.statefulsingleton.com/')))",message="labels with prefix apps.statefulsingleton.com/ are set by the operator; select by a label of the application"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Pod"},order=1
	Selector *metav1.LabelSelector `json:"selector"`

	// MaxTransitionTime is the max number of seconds of a handover, from the moment when a pod
	// waits for another to stop. After that onTimeout applies, and the phase is Failed until the
	// handover is done. A waiting pod never starts because of it. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max transition time",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=2
	MaxTransitionTime *int32 `json:"maxTransitionTime,omitempty"`

	// TerminationGracePeriod is the min terminationGracePeriodSeconds of pods. It is set when they
	// are created; a longer one of their own is kept, see respectPodGracePeriod. 0 or less does not
	// change the pod's own. Max 31536000, a year. Defaults to 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:XValidation:rule="self <= 31536000",message="max 31536000 seconds (a year), because the next pod waits until the previous one has stopped; 0 keeps the value of the pods"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Termination grace period",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"},order=3
	TerminationGracePeriod *int64 `json:"terminationGracePeriod,omitempty"`

	// RespectPodGracePeriod keeps a pod's own terminationGracePeriodSeconds if it is longer than
	// terminationGracePeriod. False shortens it for pods whose author allows that, by annotation
	// apps.statefulsingleton.com/shorten-grace-period=true in their template. Defaults to true.
	// +optional
	// +kubebuilder:default=true
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Respect pod grace period",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"},order=4
	RespectPodGracePeriod *bool `json:"respectPodGracePeriod,omitempty"`

	// GateMode specifies how a program is blocked, in pods created from now on.
	//
	// Binary: the program's container starts a small static program, which waits and then executes
	// the program with its unchanged arguments. This is the fastest mode. The pod's init containers
	// and preStop hooks are not blocked.
	//
	// Script: the same with a shell script, for images with a shell. The script is in the
	// operator's image; ConfigMap statefulsingleton-wrapper has a copy to read.
	//
	// Init: an init container waits, so that nothing else of the pod runs, including its own init
	// containers, probes and hooks. Its containers are unchanged.
	//
	// Auto: Binary for a pod whose program can wait in its container, and Init otherwise. A program
	// can wait if the pod specifies its command (the image's entrypoint is unknown), and the
	// container has nothing that would end it while it waits: a startup probe, a postStart hook, or
	// a liveness probe that relies on an initial delay. Defaults to Auto.
	// +optional
	// +kubebuilder:default=Auto
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Gate mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Auto","urn:alm:descriptor:com.tectonic.ui:select:Binary","urn:alm:descriptor:com.tectonic.ui:select:Script","urn:alm:descriptor:com.tectonic.ui:select:Init"},order=5
	GateMode GateMode `json:"gateMode,omitempty"`

	// Containers are the names of the containers that are the program, so that others, such as
	// those of a mesh or a log shipper, need not wait. A pod that lacks one of them waits as a
	// whole, as in Init mode, and a condition reports it. In Init mode the whole pod waits, and
	// this is ignored. Defaults to all of the pod's containers.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!('status-sidecar' in self)",message="status-sidecar is a container of the operator; use the name of the program's container"
	// +listType=set
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Containers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"},order=6
	Containers []string `json:"containers,omitempty"`

	// StatusSidecar adds the container status-sidecar, in which `gate status` prints the state of
	// the pod. Script mode always has it. A handover then takes up to half a second more. It is not
	// added to pods that are expected to end (restartPolicy Never or OnFailure). Defaults to false.
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Status sidecar",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=7
	StatusSidecar *bool `json:"statusSidecar,omitempty"`

	// OnTimeout specifies what happens after maxTransitionTime. Wait: a Warning event and a
	// condition. DeleteOld: in addition, the pod that has not stopped is deleted, with its grace
	// period and never by force, if it was created after this object. Defaults to Wait.
	// +optional
	// +kubebuilder:default=Wait
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On timeout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Wait","urn:alm:descriptor:com.tectonic.ui:select:DeleteOld"},order=8
	OnTimeout TimeoutPolicy `json:"onTimeout,omitempty"`

	// Release starts all waiting pods at the same time when the StatefulSingleton is deleted, like
	// annotation apps.statefulsingleton.com/release-now. status.orders has the result. Defaults to
	// none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Release",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:release","urn:alm:descriptor:com.tectonic.ui:advanced"},order=20
	Release *ReleaseOrder `json:"release,omitempty"`

	// OnEviction specifies how a drain handles the active pod.
	//
	// Replace: it is evicted, and its owner creates another one afterwards.
	//
	// ReplaceFirst: when its Node is cordoned, another pod is created on another Node, and waits at
	// its gate. The old pod is then deleted, and the program starts in the new one. Until then a
	// PodDisruptionBudget refuses its eviction, even while the operator is down. It applies to pods
	// of a Deployment whose strategy is RollingUpdate with a surge, and which could not start again
	// on a cordoned Node; condition Degraded reports any other. No other PodDisruptionBudget may
	// select these pods. Defaults to Replace.
	// +optional
	// +kubebuilder:default=Replace
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On eviction",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Replace","urn:alm:descriptor:com.tectonic.ui:select:ReplaceFirst"},order=9
	OnEviction EvictionPolicy `json:"onEviction,omitempty"`

	// Fencing specifies what happens when the node of the active pod cannot be reached. Defaults to
	// mode Proof.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Fencing",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:fencing"},order=10
	Fencing *Fencing `json:"fencing,omitempty"`

	// OnCrashLoop specifies what happens when the program of the active pod ends again and again, so
	// that its kubelet pauses before a restart (CrashLoopBackOff).
	//
	// Restart: the pod remains active, and its container is restarted.
	//
	// Handover: a waiting pod becomes active when the program ends the next time, or when the Lease
	// has expired. The old pod waits, and does not get its turn back for the crash loop of another
	// one, so the turn does not go to and fro. A pod of a newer revision that was in a crash loop
	// does not replace a running one. Requires fencing.mode Lease. Defaults to Restart.
	// +optional
	// +kubebuilder:default=Restart
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="On crash loop",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Restart","urn:alm:descriptor:com.tectonic.ui:select:Handover"},order=11
	OnCrashLoop CrashLoopPolicy `json:"onCrashLoop,omitempty"`

	// DeletionProtection makes the API server refuse the deletion of this object until it
	// is set to false. The deletion of the namespace is not refused. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deletion protection",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"},order=90
	DeletionProtection bool `json:"deletionProtection,omitempty"`
}

// StatefulSingleton allows at most one of the pods that match its selector to run its program at
// any time. When that program has stopped, the next one starts within a second. It supports the
// pods of ordinary Deployments and StatefulSets: a gate is added to them when they are created, and
// blocks them until they get the grant.
//
// It cannot give this guarantee for a program that detaches from its container, for a kubelet that
// reports a running container as stopped, for a Node that is tainted
// node.kubernetes.io/out-of-service or deleted while its machine runs, and for pods whose finalizer
// was removed manually.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ssn,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="Running, Transitioning or Failed"
// +kubebuilder:printcolumn:name="Active Pod",type=string,JSONPath=`.status.activePod`,description="The pod that may run its program"
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waitingCount`,description="Pods that wait for the grant"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether it matches its spec, and no changes are pending"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Condition Available"
// +kubebuilder:printcolumn:name="Node",type=string,priority=1,JSONPath=`.status.holder.node`,description="The node of the pod that may run its program"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must have at most 63 characters, because it is a label value of pods"
// +operator-sdk:csv:customresourcedefinitions:displayName="Stateful Singleton",resources={{Pod,v1,""},{ConfigMap,v1,""},{PodDisruptionBudget,v1,""},{Event,v1,""}}
type StatefulSingleton struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec StatefulSingletonSpec `json:"spec"`
	// Status is the observed state. observedGeneration is -1 until the operator has observed the
	// object, so that tools do not regard a new object as ready.
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
