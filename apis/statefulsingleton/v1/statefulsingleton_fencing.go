package v1

// FencingMode specifies what proves that a pod does not run its program any more.
// +kubebuilder:validation:Enum=Proof;Lease
type FencingMode string

const (
	// FencingProof requires the kubelet's report, or an administrator's statement that the machine
	// is off.
	FencingProof FencingMode = "Proof"
	// FencingLease accepts, in addition, a Lease that the pod has not renewed.
	FencingLease FencingMode = "Lease"
)

// Fencing specifies what happens when the node of the active pod cannot be reached.
type Fencing struct {
	// Mode applies to pods created from now on.
	//
	// Proof: the next pod waits until the kubelet has reported that the program has stopped, or until
	// an administrator has declared the machine off.
	//
	// Lease: an agent runs the program, and renews a Lease named NAME.singleton. If it cannot renew
	// it, it ends the program, and the next pod starts after leaseDurationSeconds. So an API server
	// that is away for longer than two thirds of that time ends all programs; they start again when it
	// is back. The pod needs one container that is the program, with a command, and no other agent or
	// gate. Two programs can run if the kernel does not schedule the agent for a third of that time
	// while it schedules the program. Defaults to Proof.
	// +optional
	// +kubebuilder:default=Proof
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Fencing mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:fencing","urn:alm:descriptor:com.tectonic.ui:select:Proof","urn:alm:descriptor:com.tectonic.ui:select:Lease"}
	Mode FencingMode `json:"mode,omitempty"`

	// LeaseDurationSeconds is the time after the last renewal in which no other pod starts. It
	// applies to pods created from now on. It should be longer than a restart of the API server.
	// Min 10, max 600. Defaults to 15.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=600
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Lease duration",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:fencing","urn:alm:descriptor:com.tectonic.ui:number"}
	LeaseDurationSeconds *int32 `json:"leaseDurationSeconds,omitempty"`
}
