package v1alpha1

// InPlaceUpdate says what an update may change of a pod that runs.
// +kubebuilder:validation:Enum=Never;Resources
type InPlaceUpdate string

const (
	// InPlaceNever recreates the pod of a member for every change of the template.
	InPlaceNever InPlaceUpdate = "Never"
	// InPlaceResources changes cpu and memory of the containers while they run, and
	// recreates the pod for any other change.
	InPlaceResources InPlaceUpdate = "Resources"
)

// UpdateStrategy says how a changed template reaches the members.
type UpdateStrategy struct {
	// InPlace says what may be changed in pods that run. Resources: a change of cpu and
	// memory alone is made by the resize subresource of the pods, one member at a time, the
	// primary last, with no restart and no handover. Where that cannot be, as before
	// Kubernetes 1.33, where resizePolicy says RestartContainer, or the Node has no room
	// within 5 minutes, the member is recreated. Never: it always is. Defaults to Never.
	// +optional
	// +kubebuilder:default=Never
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="In place",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Never","urn:alm:descriptor:com.tectonic.ui:select:Resources","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	InPlace InPlaceUpdate `json:"inPlace,omitempty"`
}
