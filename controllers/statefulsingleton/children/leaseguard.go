package children

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// The guard of Leases: all pods of an object may have the same service account, and RBAC cannot
// distinguish them. Only the pod that holds a Lease may renew it, or hand it over to the pod that the
// operator has named.

// The API server adds these to the user of a token of a pod.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// leaseGuardVariables are the variables of the policy. Only updates use those of oldObject.
var leaseGuardVariables = []admissionv1.Variable{
	{Name: "requester", Expression: extraCEL(extraPodName) + ` + "_" + ` + extraCEL(extraPodUID)},
	{Name: "annotations", Expression: `object.metadata.?annotations.orValue({})`},
	{Name: "oldAnnotations", Expression: `oldObject.metadata.?annotations.orValue({})`},
	{Name: "next", Expression: annotationCEL("object", v1.AnnotationNext)},
	{Name: "oldNext", Expression: annotationCEL("oldObject", v1.AnnotationNext)},
	{Name: "holder", Expression: `object.?spec.holderIdentity.orValue("")`},
	{Name: "oldHolder", Expression: `oldObject.?spec.holderIdentity.orValue("")`},
	{Name: "epoch", Expression: `object.?spec.leaseTransitions.orValue(0)`},
	{Name: "oldEpoch", Expression: `oldObject.?spec.leaseTransitions.orValue(0)`},
	{Name: "seconds", Expression: `object.?spec.leaseDurationSeconds.orValue(0)`},
	{Name: "sameAnnotations", Expression: fmt.Sprintf(`variables.annotations.all(k, k == %[1]q || k in variables.oldAnnotations && variables.annotations[k] == variables.oldAnnotations[k]) && `+
		`variables.oldAnnotations.all(k, k == %[1]q || k in variables.annotations)`, v1.AnnotationNext)},
	{Name: "sameMeta", Expression: `variables.sameAnnotations && object.metadata.?labels == oldObject.metadata.?labels && ` +
		`object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences && object.metadata.?finalizers == oldObject.metadata.?finalizers`},
	{Name: "unchanged", Expression: `variables.sameMeta && variables.next == variables.oldNext && object.?spec == oldObject.?spec`},
	{Name: "byHolder", Expression: fmt.Sprintf(`variables.oldHolder != "" && variables.oldHolder == variables.requester && variables.sameMeta && `+
		`variables.seconds >= %d && variables.seconds <= %d && `+
		`object.?spec.strategy == oldObject.?spec.strategy && object.?spec.preferredHolder == oldObject.?spec.preferredHolder`, spec.MinLeaseSeconds, spec.MaxLeaseSeconds)},
	{Name: "renewal", Expression: `variables.byHolder && variables.holder == variables.oldHolder && variables.epoch == variables.oldEpoch && variables.next == variables.oldNext`},
	{Name: "handover", Expression: fmt.Sprintf(`variables.byHolder && variables.oldNext != "" && variables.holder == variables.oldNext && variables.epoch == variables.oldEpoch + 1 && !(%q in variables.annotations)`, v1.AnnotationNext)},
}

// extraCEL returns the CEL expression of an attribute of the requester, or "".
func extraCEL(name string) string {
	return fmt.Sprintf(`(has(request.userInfo.extra) && %[1]q in request.userInfo.extra && size(request.userInfo.extra[%[1]q]) == 1 ? request.userInfo.extra[%[1]q][0] : "")`, name)
}

// leaseGuardName returns the name of the policy.
func leaseGuardName(namespace string) string { return "statefulsingleton-lease-guard-" + namespace }

// BuildLeaseGuard builds the policy on Leases, and its binding, as BuildGuard does. A Lease without our
// label is not checked, so that the Leases of others never depend on the policy.
func BuildLeaseGuard(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	ours := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1.LabelSingleton, Operator: metav1.LabelSelectorOpExists}}}
	const created = "label " + v1.LabelSingleton + " is reserved for the Lease of a StatefulSingleton, which only the operator creates; remove the label"
	const changed = "a Lease with label " + v1.LabelSingleton + " decides which pod of a StatefulSingleton runs its program: only the operator and the agent of the pod that holds it may change it. " +
		"To start the program in another pod, delete the pod that holds it"
	made := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: leaseGuardName(namespace), Labels: ownLabels()},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule: admissionv1.Rule{APIGroups: []string{coordinationv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"leases"},
						Scope: ptr.To(admissionv1.AllScopes)},
				}}},
				NamespaceSelector: policy.Namespaces(namespace, watched), ObjectSelector: ours, MatchPolicy: ptr.To(admissionv1.Equivalent),
			},
			Variables: leaseGuardVariables,
			Validations: []admissionv1.Validation{
				{Expression: `request.operation != "CREATE" || ` + isOperatorCEL, Message: created, Reason: ptr.To(metav1.StatusReasonForbidden)},
				{Expression: `request.operation != "UPDATE" || variables.renewal || variables.handover || variables.unchanged || ` + isOperatorCEL,
					Message: changed, Reason: ptr.To(metav1.StatusReasonForbidden)},
			},
		}}
	binding := policy.Deny(made)
	limit(binding, namespace, watched)
	return made, binding
}
