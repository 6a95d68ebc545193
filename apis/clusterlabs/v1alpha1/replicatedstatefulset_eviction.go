package v1alpha1

// EvictionPolicy specifies whether a primary may be evicted.
// +kubebuilder:validation:Enum=Handover;Allow
type EvictionPolicy string

const (
	// EvictionHandover refuses the eviction of a primary until another member has its role.
	EvictionHandover EvictionPolicy = "Handover"
	// EvictionAllow allows the eviction of a primary like that of any other member, one member at a
	// time.
	EvictionAllow EvictionPolicy = "Allow"
)

// BudgetPolicy configures the PodDisruptionBudgets of a set.
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || !has(self.maxUnavailable)",fieldPath=".minAvailable",message="may not be set together with maxUnavailable; remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !has(self.minAvailable) && !has(self.maxUnavailable)",fieldPath=".disabled",message="disables the budget; remove minAvailable and maxUnavailable, or disabled"
type BudgetPolicy struct {
	// Disabled creates no PodDisruptionBudget: all members may be evicted at any time, including a
	// primary. Defaults to false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="No budget",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Disabled bool `json:"disabled,omitempty"`

	// MinAvailable is the number of members that must stay available after an eviction. If
	// evictionPolicy protects the primaries, only the other members count. It excludes
	// maxUnavailable. Defaults to none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Least available",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// MaxUnavailable is the max number of these members that may be unavailable because of
	// evictions at the same time. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Most unavailable",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`
}
