package children

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leaseguard"
)

// BuildLeaseGuard builds the policy on Leases, and its binding, as BuildGuard does. Only the pod that holds a Lease
// may renew it, or hand it over to the pod that the operator has named.
func BuildLeaseGuard(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	return leaseguard.Guard{
		Name: "statefulsingleton-lease-guard-", Label: v1.LabelSingleton, Successor: v1.AnnotationNext, IsOperator: isOperatorCEL, Labels: ownLabels(),
		Created: "label " + v1.LabelSingleton + " is reserved for the Lease of a StatefulSingleton, which only the operator creates; remove the label",
		Changed: "a Lease with label " + v1.LabelSingleton + " decides which pod of a StatefulSingleton runs its program: only the operator and the agent of the pod that holds it may change it. " +
			"To start the program in another pod, delete the pod that holds it",
	}.Build(namespace, watched)
}
