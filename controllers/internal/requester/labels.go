package requester

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
)

// PodLabels returns the policy for pods with labels that only the pods of an object of the kind have.
// Services and budgets select by them, so that a pod with forged labels would receive requests or let
// a primary be evicted, and the operator would wait for a pod that it takes for a member.
//
// The operator may update the finalizers of the kind, and the StatefulSet controller those of
// StatefulSets (its ClusterRole is part of Kubernetes). No role for users allows either.
func PodLabels(kind Kind, namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	var names []string
	for _, label := range kind.PodLabels {
		names = append(names, fmt.Sprintf("%q", label))
	}
	listed := "[" + strings.Join(names, ", ") + "]"
	has := "l in " + wordsOf("object", "labels")
	same := listed + ".all(l, object.metadata.?labels[?l] == oldObject.metadata.?labels[?l])"
	made := kind.policy("labels", namespace, watched, admissionv1.Create, admissionv1.Update)
	rule := &made.Spec.MatchConstraints.ResourceRules[0].Rule
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{""}, []string{"v1"}, []string{"pods"}
	made.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "labelled", Expression: listed + ".exists(l, " + has + ")"}}
	made.Spec.Validations = []admissionv1.Validation{{
		Expression: fmt.Sprintf(`request.operation == "UPDATE" && %s || %s || %s`, same, finalizes(kind.Group, kind.Plural), finalizes("apps", "statefulsets")),
		Message:    fmt.Sprintf("only the pods of a %s may have these labels: %s; remove them", kind.Name, strings.Join(kind.PodLabels, ", ")),
		MessageExpression: fmt.Sprintf(`"only the pods of a %s may have the labels " + %s.filter(l, %s).join(", ") + ", and " + request.userInfo.username + " may not update %s/finalizers in namespace " + request.namespace + ". Remove them"`,
			kind.Name, listed, has, kind.Plural),
		Reason: ptr.To(metav1.StatusReasonForbidden),
	}}
	return made, policy.Deny(made)
}
