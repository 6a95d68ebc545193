package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseOrder orders that all pods go at once when the object is deleted, for an id: to write
// the same again has no second effect. One that the object was made with is not carried out.
type ReleaseOrder struct {
	// ID tells this order from those before it, such as 2026-11-25 or the number of a
	// ticket. The last 16 are remembered.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="an id has lower-case letters, digits and hyphens, with no hyphen at either end, for example 2026-11-25; correct it"
	ID string `json:"id"`
}

// OrderResult is what became of an order.
// +kubebuilder:validation:Enum=Waiting;Started;Ignored
type OrderResult string

const (
	// OrderWaiting: it is carried out when the object is deleted.
	OrderWaiting OrderResult = "Waiting"
	// OrderStarted: the object is being deleted, and its pods are let go.
	OrderStarted OrderResult = "Started"
	// OrderIgnored: it was in the spec when the object was made, or before the operator had
	// looked at the object.
	OrderIgnored OrderResult = "Ignored"
)

// OrderStatus is what became of an order of spec.release.
type OrderStatus struct {
	// ID of the order.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// Result is what became of it.
	Result OrderResult `json:"result"`
	// Time of that.
	Time metav1.Time `json:"time"`
	// Message says more, and what helps.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}
