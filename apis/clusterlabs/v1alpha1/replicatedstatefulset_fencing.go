package v1alpha1

// FencingMode specifies what proves that a member is not primary any more.
// +kubebuilder:validation:Enum=Proof;Lease
type FencingMode string

const (
	// FencingProof requires a response of the member, the kubelet's report, or an administrator's
	// statement that the machine is off.
	FencingProof FencingMode = "Proof"
	// FencingLease accepts, in addition, a Lease that the member has not renewed.
	FencingLease FencingMode = "Lease"
)

// FencingPolicy specifies what happens when the node of a primary cannot be reached.
type FencingPolicy struct {
	// Mode applies to pods created from now on: a change recreates the members one after another.
	//
	// Proof: the next primary waits until the former one or its kubelet responds, or until an
	// administrator has declared the machine off.
	//
	// Lease: process 1 of a primary renews a Lease named POD.member. If it cannot renew it, it ends
	// the container, and the next primary starts after leaseDurationSeconds. So an API server that
	// is away for longer than two thirds of that time ends all primaries; they start again when it
	// is back, the newest copy first. Two primaries can run if the kernel does not schedule process
	// 1 for a third of that time while it schedules the application. It requires spec.application.
	// Defaults to Proof.
	// +optional
	// +kubebuilder:default=Proof
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Fencing mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:fencing","urn:alm:descriptor:com.tectonic.ui:select:Proof","urn:alm:descriptor:com.tectonic.ui:select:Lease"}
	Mode FencingMode `json:"mode,omitempty"`

	// LeaseDurationSeconds is the time after the last renewal in which no other member becomes
	// primary in place of this one. It applies to pods created from now on. It should be longer than
	// a restart of the API server. Min 10, max 600. Defaults to 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=600
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Lease duration",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:fencing","urn:alm:descriptor:com.tectonic.ui:number"}
	LeaseDurationSeconds *int32 `json:"leaseDurationSeconds,omitempty"`
}
