package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberOrder orders something of a member, once for each id: to write the same again has no
// second effect, so a tool may apply it as often as it likes. One that the object was made
// with is not carried out.
// +kubebuilder:validation:XValidation:rule="self.id != oldSelf.id || self.member == oldSelf.member",fieldPath=".member",message="was another under this id, and an id is carried out once; give another id too"
type MemberOrder struct {
	// Member is the name of a pod of the set.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^rss-[a-z]([-a-z0-9]*[a-z0-9])?-(0|[1-9][0-9]{0,2})$')",message="the members of a set are named rss-<name of the set>-<ordinal from 0 to 999>; correct it"
	Member string `json:"member"`
	// ID tells this order from those before it, such as 2026-11-25 or the number of a
	// ticket: at most 63 lower-case letters, digits and hyphens. The last 16 of each kind of
	// order are remembered.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="an id has lower-case letters, digits and hyphens, with no hyphen at either end, for example 2026-11-25; correct it"
	ID string `json:"id"`
}

// OrderName is the field of the spec that an order was given by.
// +kubebuilder:validation:Enum=seedFrom;switchoverTo
type OrderName string

const (
	// OrderSeedFrom is spec.seedFrom.
	OrderSeedFrom OrderName = "seedFrom"
	// OrderSwitchoverTo is spec.switchoverTo.
	OrderSwitchoverTo OrderName = "switchoverTo"
)

// OrderResult is what became of an order.
// +kubebuilder:validation:Enum=Waiting;Started;Done;Refused;Ignored
type OrderResult string

const (
	// OrderWaiting: nothing was done for it yet.
	OrderWaiting OrderResult = "Waiting"
	// OrderStarted: the first command for it is about to be sent, or was. It is not begun
	// again.
	OrderStarted OrderResult = "Started"
	// OrderDone: it was carried out.
	OrderDone OrderResult = "Done"
	// OrderRefused: it was not carried out; the message says why, and what was done for it
	// before.
	OrderRefused OrderResult = "Refused"
	// OrderIgnored: it was in the spec when the object was made, or before the operator had
	// looked at the object.
	OrderIgnored OrderResult = "Ignored"
)

// OrderStatus is what became of an order of the spec.
type OrderStatus struct {
	// Order is the field of the spec.
	Order OrderName `json:"order"`
	// ID of the order.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// Member that it names.
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member"`
	// Result is what became of it.
	Result OrderResult `json:"result"`
	// Time of that.
	Time metav1.Time `json:"time"`
	// Message says more, and what helps.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
	// From is the primary whose role the member takes, and GrantedAt when it got it. Once
	// it has that role no more, no primary is demoted for this order again.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from,omitempty"`
	// GrantedAt is when the primary got the role, as in status.grants.
	// +optional
	GrantedAt *metav1.MicroTime `json:"grantedAt,omitempty"`
}
