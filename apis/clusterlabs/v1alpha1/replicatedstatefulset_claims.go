package v1alpha1

// RetentionPolicy says what becomes of the claims of a member that is no more.
// +kubebuilder:validation:Enum=Retain;Delete
type RetentionPolicy string

const (
	// RetainClaims keeps the claims.
	RetainClaims RetentionPolicy = "Retain"
	// DeleteClaims deletes the claims and with them, by the usual reclaim policy, the data.
	DeleteClaims RetentionPolicy = "Delete"
)

// ClaimRetentionPolicy says what becomes of claims whose member is no more.
type ClaimRetentionPolicy struct {
	// WhenDeleted applies when the ReplicatedStatefulSet is deleted, to the claims that
	// were made for it: those that are older than it are kept. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When deleted",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"}
	WhenDeleted RetentionPolicy `json:"whenDeleted,omitempty"`

	// WhenScaled applies when a member goes in a scale-down to at least one member. 0
	// replicas stop the set, and keep all claims. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When scaled",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete","urn:alm:descriptor:com.tectonic.ui:fieldGroup:persistentVolumeClaimRetentionPolicy"}
	WhenScaled RetentionPolicy `json:"whenScaled,omitempty"`
}
