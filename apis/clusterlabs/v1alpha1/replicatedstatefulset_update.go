package v1alpha1

// InPlaceUpdate specifies the changes that an update may make in a running pod.
// +kubebuilder:validation:Enum=Never;Resources
type InPlaceUpdate string

const (
	// InPlaceNever recreates the pod of a member for every change of the template.
	InPlaceNever InPlaceUpdate = "Never"
	// InPlaceResources changes cpu and memory of the running containers, and recreates the pod for
	// any other change.
	InPlaceResources InPlaceUpdate = "Resources"
)

// UpdateStrategy specifies how a changed template is rolled out to the members.
type UpdateStrategy struct {
	// InPlace specifies the changes that an update may make in running pods. Resources: if only cpu
	// and memory change, they are changed through the resize subresource of the pods, one member at
	// a time, the primary last, without a restart or handover. The member is recreated if that is
	// not possible: before Kubernetes 1.33, if resizePolicy is RestartContainer, or if the Node has
	// no room within 5 minutes. Never: the member is always recreated. Defaults to Never.
	// +optional
	// +kubebuilder:default=Never
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="In place",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Never","urn:alm:descriptor:com.tectonic.ui:select:Resources","urn:alm:descriptor:com.tectonic.ui:fieldGroup:updateStrategy"}
	InPlace InPlaceUpdate `json:"inPlace,omitempty"`
}
