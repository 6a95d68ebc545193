package controllers

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
)

// +kubebuilder:rbac:groups=enge.me,resources=statefulclusters,verbs=get;list,roleName=installer-role
// +kubebuilder:rbac:groups=clusterlabs.org,resources=replicatedstatefulsets,verbs=get;list,roleName=installer-role
// +kubebuilder:rbac:groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=get;list,roleName=installer-role

// rightsPolicy denies the deletion of the operator's Roles and RoleBindings in a terminating
// namespace while an object of the kind there has finalizers. The namespace controller deletes
// resources in random order: without its rights the operator cannot remove the finalizers, and the
// namespace is never deleted. The namespace controller retries until the last object is deleted. If
// the policy cannot be evaluated, the deletion is allowed.
func rightsPolicy(kind requester.Kind, name, namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	// OLM generates the names of Roles, and labels them with the ClusterServiceVersion.
	const (
		roles    = `request.resource.resource == "roles" && (oldObject.metadata.name.startsWith(%[1]q) || oldObject.metadata.?labels[?"olm.owner"].orValue("").startsWith(%[2]q))`
		bindings = `request.resource.resource == "rolebindings" && oldObject.?subjects.orValue([]).exists(s, s.kind == "ServiceAccount" && s.?namespace.orValue("") == %[3]q && s.name.startsWith(%[1]q))`
	)
	made := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(kind.Name) + "-rights-" + namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": name}},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			ParamKind:     &admissionv1.ParamKind{APIVersion: kind.String(), Kind: kind.Name},
			FailurePolicy: ptr.To(admissionv1.Ignore),
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule: admissionv1.Rule{APIGroups: []string{"rbac.authorization.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"roles", "rolebindings"},
						Scope: ptr.To(admissionv1.NamespacedScope)},
				}}},
				NamespaceSelector: policy.Namespaces(namespace, watched), ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionv1.Equivalent),
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "operator", Expression: fmt.Sprintf("("+roles+") || ("+bindings+")", name+"-", name+".", namespace)}},
			Validations: []admissionv1.Validation{{
				// A match condition has no namespaceObject.
				Expression: `!has(namespaceObject.metadata.deletionTimestamp) || params.metadata.?finalizers.orValue([]).size() == 0`,
				Message:    "the operator needs this permission to remove the finalizers of a " + kind.Name,
				MessageExpression: fmt.Sprintf(`"the operator needs this permission to remove the finalizers of %s " + params.metadata.name + ". If they are not removed: kubectl -n %s get pods"`,
					kind.Name, namespace),
				Reason: ptr.To(metav1.StatusReasonForbidden),
			}},
		},
	}
	binding := policy.Deny(made)
	// Every object of the namespace of the Role is a parameter.
	binding.Spec.ParamRef = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: ptr.To(admissionv1.AllowAction)}
	return made, binding
}
