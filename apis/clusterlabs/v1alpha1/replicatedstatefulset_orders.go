package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberOrder is an order for a member. It is executed once for each id: writing the same order
// again has no effect, so tools may apply it repeatedly. An order that exists when the object is
// created is ignored.
// +kubebuilder:validation:XValidation:rule="self.id != oldSelf.id || self.member == oldSelf.member",fieldPath=".member",message="differs from the earlier order with this id, and an id is executed once; set another id too"
type MemberOrder struct {
	// Member is the name of a pod of the set.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^rss-[a-z]([-a-z0-9]*[a-z0-9])?-(0|[1-9][0-9]{0,2})$')",message="the members of a set are named rss-<name of the set>-<ordinal from 0 to 999>; correct it"
	Member string `json:"member"`
	// ID distinguishes this order from earlier ones, for example 2026-11-25 or a ticket number: at
	// most 63 lower-case letters, digits and hyphens. The last 16 of each kind of order are
	// remembered.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="an id has lower-case letters, digits and hyphens, with no hyphen at either end, for example 2026-11-25; correct it"
	ID string `json:"id"`
}

// OrderName is the field of the spec that contains the order.
// +kubebuilder:validation:Enum=seedFrom;switchoverTo
type OrderName string

const (
	// OrderSeedFrom is spec.seedFrom.
	OrderSeedFrom OrderName = "seedFrom"
	// OrderSwitchoverTo is spec.switchoverTo.
	OrderSwitchoverTo OrderName = "switchoverTo"
)

// OrderResult is the result of an order.
// +kubebuilder:validation:Enum=Waiting;Started;Done;Refused;Ignored
type OrderResult string

const (
	// OrderWaiting: the order is pending.
	OrderWaiting OrderResult = "Waiting"
	// OrderStarted: the first command of the order was sent or will be sent. It is not started
	// again.
	OrderStarted OrderResult = "Started"
	// OrderDone: the order was executed.
	OrderDone OrderResult = "Done"
	// OrderRefused: the order was not executed. The message has the reason, and the steps that were
	// already executed.
	OrderRefused OrderResult = "Refused"
	// OrderIgnored: the order was in the spec when the object was created, or before the operator
	// first observed the object.
	OrderIgnored OrderResult = "Ignored"
)

// OrderStatus is the state of an order in the spec.
type OrderStatus struct {
	// Order is the field of the spec.
	Order OrderName `json:"order"`
	// ID of the order.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// Member of the order.
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member"`
	// Result of the order.
	Result OrderResult `json:"result"`
	// Time of the result.
	Time metav1.Time `json:"time"`
	// Message has details and instructions.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
	// From is the primary that the member replaces. When it no longer has the role of grantedAt, no
	// primary is demoted for this order again.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from,omitempty"`
	// GrantedAt is when the primary got the role, as in status.grants.
	// +optional
	GrantedAt *metav1.MicroTime `json:"grantedAt,omitempty"`
}
