package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodPolicy specifies the pods of the members. A change is rolled out to one member at a time.
// Commands other than preStop are an exception: a change applies to their next execution.
// +kubebuilder:validation:XValidation:rule="!has(self.container) || size(self.container) == 0 || self.containers.exists(c, c.name == self.container)",fieldPath=".container",message="is not in pod.containers; use the name of a container, or remove it to use the first"
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaimTemplates) == has(oldSelf.volumeClaimTemplates) && (!has(self.volumeClaimTemplates) || self.volumeClaimTemplates == oldSelf.volumeClaimTemplates || (self.volumeClaimTemplates.map(c, has(c.metadata) && has(c.metadata.name) ? c.metadata.name : '?') == oldSelf.volumeClaimTemplates.map(c, has(c.metadata) && has(c.metadata.name) ? c.metadata.name : '?') && self.volumeClaimTemplates.map(c, has(c.spec) && has(c.spec.storageClassName) ? c.spec.storageClassName : '?') == oldSelf.volumeClaimTemplates.map(c, has(c.spec) && has(c.spec.storageClassName) ? c.spec.storageClassName : '?') && self.volumeClaimTemplates.map(c, has(c.spec) && has(c.spec.volumeMode) ? c.spec.volumeMode : '?') == oldSelf.volumeClaimTemplates.map(c, has(c.spec) && has(c.spec.volumeMode) ? c.spec.volumeMode : '?') && self.volumeClaimTemplates.map(c, has(c.spec) && has(c.spec.accessModes) ? c.spec.accessModes : []) == oldSelf.volumeClaimTemplates.map(c, has(c.spec) && has(c.spec.accessModes) ? c.spec.accessModes : [])))",fieldPath=".volumeClaimTemplates",message="only the requested storage and the volumeAttributesClassName may change, and the storage may only grow; for anything else delete the ReplicatedStatefulSet (its claims stay) and create another"
type PodPolicy struct {
	// Containers of the pod; at least one, each with an image. Commands run in the container that
	// pod.container names. It must start idle: a command starts the application.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="a pod must have at least one container, in which commands run"
	// +kubebuilder:validation:XValidation:rule="self.all(c, has(c.image) && size(c.image) > 0)",message="each container needs an image"
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Containers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	Containers []corev1.Container `json:"containers"`

	// Container is the name of the container in which commands run. Defaults to the first.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Container of the commands",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	Container string `json:"container,omitempty"`

	// Commands by name. sequence prints how new this member's data is, as one integer of at most 64
	// bits. status exits with 0 (running; as a secondary if there is a command secondary), 7
	// (stopped) or 8 (running as primary). stop stops the member, and primary starts it as primary.
	// These four are required without spec.application. seed starts the first member; default
	// primary. secondary starts a member as a secondary; without it, members that are not primary
	// are idle. promote changes a running secondary to primary; default primary. demote changes a
	// running primary to secondary; default stop and then secondary. leave makes the application
	// forget a member before a scale-down removes it; default none. The kubelet runs preStop when the
	// pod is deleted, unless the container has its own preStop hook.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c in ['sequence', 'status', 'stop', 'primary', 'seed', 'secondary', 'promote', 'demote', 'leave', 'preStop'])",message="supports only sequence, status, stop, primary, seed, secondary, promote, demote, leave and preStop; remove or rename the others"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Commands",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	Commands map[string]Command `json:"commands,omitempty"`

	// InitContainers of the pod. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, has(c.image) && size(c.image) > 0)",message="each container needs an image"
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Init containers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	InitContainers []corev1.Container `json:"initContainers,omitempty"`

	// Volumes of the pod. The operator adds podinfo, tls-peer, tls-server, and one secret-<name>
	// for each of spec.secrets, and with spec.application application-agent and
	// application-credentials. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(v, !(v.name in ['podinfo', 'tls-peer', 'tls-server']))",message="podinfo, tls-peer and tls-server are volumes of the operator; rename yours"
	// +listType=map
	// +listMapKey=name
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Volumes",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// VolumeClaimTemplates are the claims of every member, named <template>-<pod>. Each is mounted
	// as the volume of its name. They are kept when the set is scaled down or deleted. The
	// requested storage may be increased if the storage class can expand volumes; everything else
	// is immutable. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Volume claim templates",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// Labels of the pods. Key app and keys with the prefix rss or clusterlabs.org/ are reserved for
	// the operator. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'app' && !k.startsWith('rss') && !k.startsWith('clusterlabs.org/'))",message="label app and labels that start with rss or clusterlabs.org/ are reserved for the operator; remove or rename them"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Labels",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the pods. Keys with the prefix clusterlabs.org/ are reserved for the operator.
	// Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('clusterlabs.org/'))",message="annotations that start with clusterlabs.org/ are reserved for the operator; remove them"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	Annotations map[string]string `json:"annotations,omitempty"`

	// AntiAffinity keeps any two members from the same Node (kubernetes.io/hostname), in addition
	// to spec.affinity. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Anti-affinity",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	AntiAffinity bool `json:"antiAffinity,omitempty"`

	// AutomountServiceAccountToken mounts the token of the ServiceAccount. Defaults to the value of
	// the ServiceAccount.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Automount service account token",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty"`

	// SecurityContext of the pod. Defaults to none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Security context",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// NodeSelector is merged with spec.nodeSelector, and has precedence over it. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Node selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Node","urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// TerminationGracePeriodSeconds is the number of seconds after which the containers of a
	// deleted pod are killed. Defaults to 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Termination grace period",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod"}
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Template is a pod template with metadata and spec, for every field of a pod that is missing
	// here, for example priorityClassName or topologySpreadConstraints. Its labels, annotations,
	// containers, volumes and other lists are added to those of spec and spec.pod. Fields and items
	// that are also set there are refused. Defaults to none.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod template",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:pod","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Template *runtime.RawExtension `json:"template,omitempty"`
}

// Command is a program that runs in a container of a member.
type Command struct {
	// Command is the program and its arguments, without a shell. The DNS names of the primary
	// members are appended, except for preStop. $(RSS_EPOCH) in it is replaced by status.epoch,
	// which is higher for each new primary, and $(RSS_CREATED) by the time when the object was
	// created, in seconds since 1970.
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && size(self[0]) > 0",message="has no program; set it and its arguments, for example [\"/status.sh\"]"
	// +listType=atomic
	Command []string `json:"command"`

	// Timeout is the max run time of the command. After that its result is unknown, and the
	// operator checks the state of the member. Min 10s, max one day. preStop has the grace period
	// of the pod instead. Defaults to 10m.
	// +optional
	// +kubebuilder:default="10m"
	Timeout Duration `json:"timeout,omitempty"`
}
