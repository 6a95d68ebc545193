package v1alpha1

// RetentionPolicy specifies whether the claims of a removed member are kept.
// +kubebuilder:validation:Enum=Retain;Delete
type RetentionPolicy string

const (
	// RetainClaims keeps the claims.
	RetainClaims RetentionPolicy = "Retain"
	// DeleteClaims deletes the claims and with them, by the usual reclaim policy, the data.
	DeleteClaims RetentionPolicy = "Delete"
)

// ClaimRetentionPolicy specifies whether the claims of removed members are kept.
type ClaimRetentionPolicy struct {
	// WhenDeleted applies when the ReplicatedStatefulSet is deleted, to the claims that were
	// created for it. Older claims are kept. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When deleted",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"}
	WhenDeleted RetentionPolicy `json:"whenDeleted,omitempty"`

	// WhenScaled applies when a member is removed by a scale-down to at least one member. Scaling
	// to 0 replicas stops the set, and keeps all claims. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When scaled",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"}
	WhenScaled RetentionPolicy `json:"whenScaled,omitempty"`
}
