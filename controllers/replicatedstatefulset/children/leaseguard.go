package children

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leaseguard"
)

// leaseGuardPrefix precedes the namespace of the operator in the name of the policy.
const leaseGuardPrefix = "replicatedstatefulset-lease-guard-"

// mayWriteStatus is the CEL expression that the requester may patch the status of ReplicatedStatefulSets, as only
// the operator may.
var mayWriteStatus = fmt.Sprintf(`authorizer.group(%q).resource("replicatedstatefulsets").subresource("status").namespace(request.namespace).check("patch").allowed()`, v1alpha1.GroupVersion.Group)

// BuildLeaseGuard builds the policy on the Leases of members, and its binding. watched are the namespaces that the
// operator manages; empty means all. A pod that holds a Lease may only renew it, and only the operator names another
// holder.
func BuildLeaseGuard(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	return leaseguard.Guard{
		Name: leaseGuardPrefix, Label: v1alpha1.LabelLease, IsOperator: mayWriteStatus,
		Labels:  map[string]string{v1alpha1.LabelManaged: v1alpha1.True},
		Created: "label " + v1alpha1.LabelLease + " is reserved for the Leases of a ReplicatedStatefulSet, which only the operator creates; remove the label",
		Changed: "a Lease with label " + v1alpha1.LabelLease + " decides which member of a ReplicatedStatefulSet may be primary: only the operator may change it, and the agent of the pod that holds it may renew it. " +
			"To make another member primary, set annotation " + v1alpha1.AnnotationSwitchoverTo + " of the ReplicatedStatefulSet",
	}.Build(namespace, watched)
}
