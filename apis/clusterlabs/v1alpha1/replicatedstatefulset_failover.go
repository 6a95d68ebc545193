package v1alpha1

// RestartPrimary specifies whether a failover may start the former primary instead of promoting a
// secondary.
// +kubebuilder:validation:Enum=Never;IfNewest
type RestartPrimary string

const (
	// RestartNever promotes the best secondary as soon as the primary has stopped, if all other
	// members run as secondaries.
	RestartNever RestartPrimary = "Never"
	// RestartIfNewest reads the sequence of the former primary first, and starts it again if its
	// copy is newer than that of every secondary.
	RestartIfNewest RestartPrimary = "IfNewest"
)

// FailoverPolicy specifies how the next primary is chosen after the last one has stopped.
type FailoverPolicy struct {
	// RestartPrimary specifies whether the former primary is compared with the secondaries. Never:
	// a secondary is promoted at once, and data that only the former primary had is lost. IfNewest:
	// a failover waits up to 1m for the former primary to run again, reads its sequence, and starts
	// it if it is newer. If that start fails, no older copy takes over until annotation
	// clusterlabs.org/seed-from names one. Defaults to Never.
	// +optional
	// +kubebuilder:default=Never
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Restart primary",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:failover","urn:alm:descriptor:com.tectonic.ui:select:Never","urn:alm:descriptor:com.tectonic.ui:select:IfNewest"}
	RestartPrimary RestartPrimary `json:"restartPrimary,omitempty"`

	// RecreateUnresponsiveAfter is how long the choice of a primary waits for a member that runs on
	// a Ready Node but does not respond to the status command. After that, its pod is deleted and
	// recreated on the same claims. The pod is deleted only if it has claims, and a majority of the
	// members have reported their sequences. Min 1m, max 30 days. Defaults to none: the choice
	// waits until the member responds or its pod is deleted manually.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Recreate unresponsive members after",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:failover","urn:alm:descriptor:com.tectonic.ui:text"}
	RecreateUnresponsiveAfter Duration `json:"recreateUnresponsiveAfter,omitempty"`

	// MaxLoss limits the data that a failover may lose, in units of command sequence. A secondary is
	// promoted only if the sequence of the former primary, read after its end, is at most that much
	// higher. Otherwise the former primary is started again. If its sequence cannot be read, the
	// failover waits until it can, or until annotation clusterlabs.org/seed-from names a member. It
	// applies while a secondary runs. Otherwise the newest copy is started, as without it. It requires
	// claims. Defaults to none: the loss is not limited.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Max loss",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:failover","urn:alm:descriptor:com.tectonic.ui:number"}
	MaxLoss *int64 `json:"maxLoss,omitempty"`
}
