package v1alpha1

// EvictionPolicy says whether a primary may be evicted.
// +kubebuilder:validation:Enum=Handover;Allow
type EvictionPolicy string

const (
	// EvictionHandover refuses the eviction of a primary until another member has
	// its role.
	EvictionHandover EvictionPolicy = "Handover"
	// EvictionAllow lets a primary be evicted as any other member, one member at a
	// time.
	EvictionAllow EvictionPolicy = "Allow"
)

// BudgetPolicy is about the PodDisruptionBudgets of a set.
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || !has(self.maxUnavailable)",fieldPath=".minAvailable",message="may not be set together with maxUnavailable; remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !has(self.minAvailable) && !has(self.maxUnavailable)",fieldPath=".disabled",message="means that there is no budget; remove minAvailable and maxUnavailable, or disabled"
type BudgetPolicy struct {
	// Disabled leaves the set without a PodDisruptionBudget: all members may be evicted
	// at any time, a primary too. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="No budget",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Disabled bool `json:"disabled,omitempty"`

	// MinAvailable is how many members must stay available when one is evicted: of
	// those that are no primary, where evictionPolicy keeps the primaries. Not together
	// with maxUnavailable. Defaults to none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Least available",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// MaxUnavailable is how many of the same members may be unavailable by evictions
	// at one time. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Most unavailable",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`
}
