package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseOrder is an order to release all pods at once when the object is deleted. It is executed
// once for each id: writing the same order again has no effect. An order that exists when the
// object is created is ignored.
type ReleaseOrder struct {
	// ID distinguishes this order from earlier ones, for example 2026-11-25 or a ticket number. The
	// last 16 are remembered.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="an id has lower-case letters, digits and hyphens, with no hyphen at either end, for example 2026-11-25; correct it"
	ID string `json:"id"`
}

// OrderResult is the result of an order.
// +kubebuilder:validation:Enum=Waiting;Started;Ignored
type OrderResult string

const (
	// OrderWaiting: the order will be executed when the object is deleted.
	OrderWaiting OrderResult = "Waiting"
	// OrderStarted: the object is being deleted, and its pods are being released.
	OrderStarted OrderResult = "Started"
	// OrderIgnored: the order was in the spec when the object was created, or before the operator
	// first observed the object.
	OrderIgnored OrderResult = "Ignored"
)

// OrderStatus is the state of an order in spec.release.
type OrderStatus struct {
	// ID of the order.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// Result of the order.
	Result OrderResult `json:"result"`
	// Time of the result.
	Time metav1.Time `json:"time"`
	// Message has details and instructions.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}
