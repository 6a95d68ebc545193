// Package requester makes the API server check the permissions of requesters that create or change an
// object. They need the permissions that the operator uses on their behalf, in the namespace of the
// object. Without this check, an operator that creates pods for all users would lend them its own
// permissions.
//
// The check is a ValidatingAdmissionPolicy with an authorizer. So it is enforced even if the operator
// is not running, and requests that cannot be evaluated are rejected. It covers only our kinds.
// Unchanged fields are not checked: a user who scales an object need not be allowed to create pods, and
// neither must controllers that set labels.
package requester

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
)

// Kind is a kind whose requesters are checked.
type Kind struct {
	schema.GroupVersion
	Name, Plural string
	Rights       []Right
	// Free contains the fields of spec that require no right, with the reasons.
	Free map[string]string
	// Owned are the resources whose objects the operator adopts if an object of the kind is their
	// controller.
	Owned []admissionv1.Rule
	// PodLabels are the labels that only the operator and the StatefulSet controller write on pods.
	PodLabels []string
}

// Definition returns the name of the kind's CustomResourceDefinition.
func (k Kind) Definition() string { return k.Plural + "." + k.Group }

// policyName returns the name of a policy of the kind, for an operator in the given namespace.
func (k Kind) policyName(what, namespace string) string {
	return strings.ToLower(k.Name) + "-" + what + "-" + namespace
}

// Right is a permission that a requester must have, because the operator uses its own on behalf of the
// requester.
type Right struct {
	Verb, Group, Resource, Subresource string
	// Does completes the sentence "the operator … for it".
	Does string
	// Fields are the paths below spec that require the right. Without them, the right is not required.
	Fields []string
	// If is a CEL expression over spec. If it is false, the object does not require the right. Empty
	// means true.
	If string
	// Annotations are the keys of annotations that also require the right, because they are orders.
	Annotations []string
	// Copied is true if the labels and annotations of the object are copied into pods. Any change of
	// them then requires the right, except annotations with a prefix in NotCopied.
	Copied    bool
	NotCopied []string
	// Created is true if the creation of an object requires the right for any spec.
	Created bool
}

// question returns the arguments of kubectl auth can-i for the right. They use --subresource, because
// can-i treats pods/exec as a pod with the name exec.
func (r Right) question() string {
	if r.Subresource == "" {
		return r.name()
	}
	of := r
	of.Subresource = ""
	return of.name() + " --subresource=" + r.Subresource
}

// name returns the verb and resource, such as "create pods/exec".
func (r Right) name() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Group != "" {
		resource += "." + r.Group
	}
	return r.Verb + " " + resource
}

// values returns the CEL expression for the values of an object that require the right. It is a list
// with an empty list for each missing field.
func (r Right) values(object string) string {
	var parts []string
	for _, field := range r.Fields {
		parts = append(parts, fmt.Sprintf("%s ? [%s.spec.%s] : []", present(object, field), object, field))
	}
	for _, key := range r.Annotations {
		parts = append(parts, fmt.Sprintf("has(%[1]s.metadata.annotations) && %[2]q in %[1]s.metadata.annotations ? [%[1]s.metadata.annotations[%[2]q]] : []", object, key))
	}
	if r.Created {
		parts = append(parts, "[true]")
	}
	all := "[" + strings.Join(parts, ", ") + "]"
	if r.If == "" {
		return all
	}
	return fmt.Sprintf("(%s) ? %s : []", ownSpec.ReplaceAllString(r.If, "${1}"+object+".spec."), all)
}

// ownSpec matches the spec of the object itself, not a nested spec.
var ownSpec = regexp.MustCompile(`(^|[^.\w])spec\.`)

// present returns the CEL expression that is true if a path below spec exists.
func present(object, field string) string {
	at := object + ".spec"
	terms := []string{"has(" + at + ")"}
	for part := range strings.SplitSeq(field, ".") {
		at += "." + part
		terms = append(terms, "has("+at+")")
	}
	return strings.Join(terms, " && ")
}

// keeps returns the CEL expression that is true if an update does not change the metadata that is
// copied into pods. It is true for creates, for which the rights of the spec are checked.
func (r Right) keeps() string {
	var copied []string
	for _, prefix := range r.NotCopied {
		copied = append(copied, fmt.Sprintf("!k.startsWith(%q)", prefix))
	}
	of := func(object string) string { return wordsOf(object, "annotations") }
	// Comparing complete maps is cheap for any number of keys. Comparing them by key is not: at about
	// ten thousand keys, the API server exceeds the cost limit and rejects every change of the object.
	few := fmt.Sprintf("size(%[1]s) <= %[3]d && size(%[2]s) <= %[3]d", of("object"), of("oldObject"), maxAnnotations)
	within := func(a, b string) string {
		return fmt.Sprintf("%[1]s.all(k, !(%[3]s) || (k in %[2]s && %[2]s[k] == %[1]s[k]))", of(a), of(b), strings.Join(append(copied, "true"), " && "))
	}
	return "oldObject == null || (object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && (" +
		of("object") + " == " + of("oldObject") + " || " + few + " && " + within("object", "oldObject") + " && " + within("oldObject", "object") + "))"
}

// what describes the parts of an object that require the right.
func (r Right) what() string {
	var words []string
	for _, field := range r.Fields {
		words = append(words, "spec."+field)
	}
	for _, key := range r.Annotations {
		words = append(words, "annotation "+key)
	}
	if r.Created {
		words = append(words, "each new object")
	}
	if r.Copied {
		words = append(words, "a change of metadata.labels or metadata.annotations, which are copied to pods,")
	}
	return strings.Join(words, ", ")
}

// check returns the CEL expression that is true if the requester has the right.
func (r Right) check() string {
	subresource := ""
	if r.Subresource != "" {
		subresource = fmt.Sprintf(".subresource(%q)", r.Subresource)
	}
	return fmt.Sprintf("authorizer.group(%q).resource(%q)%s.namespace(request.namespace).check(%q).allowed()", r.Group, r.Resource, subresource, r.Verb)
}

// finalizes returns the CEL expression that is true if the requester may update the finalizers of a
// resource.
func finalizes(group, resource string) string {
	return Right{Verb: "update", Group: group, Resource: resource, Subresource: "finalizers"}.check()
}

// Policy returns the policy and binding with which the API server checks requesters of a kind.
// namespace is that of the operator. watched are the namespaces in which it acts; empty means all.
func Policy(kind Kind, namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	made := kind.policy("requester", namespace, watched, admissionv1.Create, admissionv1.Update)
	made.Spec.Validations = []admissionv1.Validation{elsewhere(kind, namespace), small("labels", MaxLabels), small("annotations", maxAnnotations), short()}
	for i, right := range kind.Rights {
		now, before := fmt.Sprintf("asked%d", i), fmt.Sprintf("had%d", i)
		made.Spec.Variables = append(made.Spec.Variables,
			admissionv1.Variable{Name: now, Expression: right.values("object")},
			admissionv1.Variable{Name: before, Expression: "oldObject == null ? [] : " + right.values("oldObject")})
		// Removing a field has an effect like setting it, so it also requires the right. Values that
		// are ignored due to If do not, for example if a retention policy is no longer Delete.
		nothing := fmt.Sprintf("!variables.%s.exists(f, size(f) > 0)", now)
		if right.If == "" {
			nothing = "oldObject == null && " + nothing
		}
		unchanged := fmt.Sprintf("%[3]s || variables.%[1]s == variables.%[2]s", now, before, nothing)
		if right.Copied {
			unchanged = right.keeps()
		}
		made.Spec.Validations = append(made.Spec.Validations, admissionv1.Validation{
			Expression: fmt.Sprintf("%s || %s", unchanged, right.check()),
			Message:    fmt.Sprintf("you may not %s in this namespace, which the operator does for a %s", right.name(), kind.Name),
			MessageExpression: fmt.Sprintf(`"the operator %s for a %s, and " + request.userInfo.username + " may not %s in namespace " + request.namespace + `+
				`". Request a role with that verb (%s requires it). To check: kubectl auth can-i %s -n " + request.namespace + " --as=" + request.userInfo.username`,
				right.Does, kind.Name, right.name(), right.what(), right.question()),
			Reason: ptr.To(metav1.StatusReasonForbidden),
		})
	}
	return made, policy.Deny(made)
}

// policy returns a policy without validations for operations on objects of the kind.
func (k Kind) policy(what, namespace string, watched []string, operations ...admissionv1.OperationType) *admissionv1.ValidatingAdmissionPolicy {
	selector := &metav1.LabelSelector{}
	if len(watched) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Sorted(slices.Values(watched))}}
	}
	meta := metav1.ObjectMeta{Name: k.policyName(what, namespace),
		Labels: map[string]string{"app.kubernetes.io/managed-by": "stateful-operator"}}
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: operations,
				Rule: admissionv1.Rule{APIGroups: []string{k.Group}, APIVersions: []string{k.Version}, Resources: []string{k.Plural},
					Scope: ptr.To(admissionv1.NamespacedScope)},
			}}},
			NamespaceSelector: selector, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionv1.Equivalent),
		},
	}}
}

// Deletions returns the policy that rejects the deletion of an object whose spec.deletionProtection is
// true. It is enforced even if the operator is not running. In a terminating namespace it allows all
// deletions: the namespace controller deletes the pods and claims in any case, and only the object
// would remain.
func Deletions(kind Kind, namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	made := kind.policy("deletion", namespace, watched, admissionv1.Delete)
	made.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "protected", Expression: "oldObject.?spec.deletionProtection.orValue(false) == true"}}
	made.Spec.Validations = []admissionv1.Validation{{
		Expression: "has(namespaceObject.metadata.deletionTimestamp)",
		MessageExpression: fmt.Sprintf(`"spec.deletionProtection of %[1]s " + oldObject.metadata.name + " is true. To delete it, first: kubectl patch %[2]s.%[3]s " + oldObject.metadata.name + " -n " + oldObject.metadata.namespace + `+
			`" --type=merge -p '{\"spec\":{\"deletionProtection\":false}}'"`, kind.Name, kind.Plural, kind.Group),
		Message: fmt.Sprintf("spec.deletionProtection of this %s is true; set it to false to delete the object", kind.Name),
		Reason:  ptr.To(metav1.StatusReasonForbidden),
	}}
	return made, policy.Deny(made)
}

// Owners returns the policy for objects whose controller reference is an object of the kind. The
// operator would adopt such a pod as a member, and remove another member for it. As with admission
// plugin OwnerReferencesPermissionEnforcement, the requester must be allowed to update the finalizers
// of the kind, as the operator is.
func Owners(kind Kind, namespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	const owners = `%s.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false) && o.kind == %q && o.apiVersion.startsWith(%q))`
	of := func(object string) string { return fmt.Sprintf(owners, object, kind.Name, kind.Group+"/") }
	same := of("object") + ".all(o, " + of("oldObject") + ".exists(p, p.uid == o.uid && p.name == o.name))"
	meta := metav1.ObjectMeta{Name: kind.policyName("owner", namespace),
		Labels: map[string]string{"app.kubernetes.io/managed-by": "stateful-operator"}}
	made := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionv1.Equivalent)},
		MatchConditions:  []admissionv1.MatchCondition{{Name: "owned", Expression: "size(" + of("object") + ") > 0"}},
		Validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf(`(request.operation == "UPDATE" && %s) || %s`, same, finalizes(kind.Group, kind.Plural)),
			MessageExpression: fmt.Sprintf(`"the operator manages objects whose controller is a %s, and " + request.userInfo.username + " may not update %s/finalizers in namespace " + request.namespace + ". Remove that owner"`,
				kind.Name, kind.Plural),
			Message: fmt.Sprintf("you may not update %s/finalizers in this namespace, so you cannot create objects whose controller is a %s; remove that owner", kind.Plural, kind.Name),
			Reason:  ptr.To(metav1.StatusReasonForbidden),
		}},
	}}
	for _, rule := range kind.Owned {
		rule.APIVersions, rule.Scope = []string{"*"}, ptr.To(admissionv1.NamespacedScope)
		made.Spec.MatchConstraints.ResourceRules = append(made.Spec.MatchConstraints.ResourceRules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, Rule: rule}})
	}
	return made, policy.Deny(made)
}

// The max number of labels and of annotations of an object. The API server does not limit either, and
// both use memory of the operator.
const (
	MaxLabels      = 64
	maxAnnotations = 256
)

// wordsOf returns the CEL expression of the labels or annotations of an object.
func wordsOf(object, kind string) string {
	return fmt.Sprintf("%s.metadata.?%s.orValue({})", object, kind)
}

// small returns a validation that rejects an object with more than most labels or annotations. An
// existing object above the limit can still be updated, if the update adds none.
func small(kind string, most int) admissionv1.Validation {
	of := func(object string) string { return wordsOf(object, kind) }
	return admissionv1.Validation{
		Expression: fmt.Sprintf("size(%s) <= %d || oldObject != null && size(%s) <= size(%s)", of("object"), most, of("object"), of("oldObject")),
		Message:    fmt.Sprintf("metadata.%s: there may be at most %d; remove the others", kind, most),
		Reason:     ptr.To(metav1.StatusReasonInvalid),
	}
}

// MaxAnnotationBytes is the max size of the annotations of an object in bytes, keys and values
// together, without the copy that kubectl apply keeps. The cache keeps annotations up to this size,
// together with 64 labels. So every object that passes this check is reconciled (package unread).
const MaxAnnotationBytes = 64 << 10

// short returns a validation that rejects an object with more than MaxAnnotationBytes of annotations.
// An existing object above the limit can still be updated, if they do not grow. The size is not
// computed for objects with more than maxAnnotations annotations, because that would exceed the cost
// limit of a policy.
func short() admissionv1.Validation {
	of := func(object string) string { return wordsOf(object, "annotations") }
	bytes := func(object string) string {
		return fmt.Sprintf("%[1]s.map(k, k == %[2]q ? 0 : size(bytes(k)) + size(bytes(%[1]s[k]))).sum()", of(object), corev1.LastAppliedConfigAnnotation)
	}
	return admissionv1.Validation{
		Expression: fmt.Sprintf("size(%[1]s) > %[2]d || %[3]s <= %[4]d || oldObject != null && (size(%[5]s) > %[2]d || %[3]s <= %[6]s)",
			of("object"), maxAnnotations, bytes("object"), MaxAnnotationBytes, of("oldObject"), bytes("oldObject")),
		Message: fmt.Sprintf("metadata.annotations: keys and values may have at most %d bytes in total; shorten or remove them", MaxAnnotationBytes),
		Reason:  ptr.To(metav1.StatusReasonInvalid),
	}
}

// elsewhere returns a validation that rejects objects in two namespaces. A user who can edit objects in
// the operator's namespace could use its account, and the system pods in kube-system must never be
// blocked.
func elsewhere(kind Kind, namespace string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression: fmt.Sprintf("request.operation != \"CREATE\" || !(request.namespace in [%q, %q])", metav1.NamespaceSystem, namespace),
		Message: fmt.Sprintf("a %s cannot be in namespace %s or %s, the operator's own: a user who can create pods there can use the service accounts of the cluster or of the operator. Use another namespace",
			kind.Name, metav1.NamespaceSystem, namespace),
		Reason: ptr.To(metav1.StatusReasonForbidden),
	}
}

// Guard creates and updates the policies of the kinds. It runs only on the leader.
type Guard struct {
	policy.Keeper
	Kinds []Kind
	// Namespace is the operator's namespace.
	Namespace string
	// Watched are the namespaces in which the operator acts; empty means all.
	Watched []string
}

// Start keeps the policies up to date until ctx ends.
func (g *Guard) Start(ctx context.Context) error {
	policy.Look(ctx, "The policies that check requesters", policy.Interval, policy.Interval, func() string { return policy.Problem(g.keepAll(ctx)) })
	return nil
}

// keepAll creates or updates the policies of all kinds.
func (g *Guard) keepAll(ctx context.Context) error {
	var problems []error
	for _, kind := range g.Kinds {
		keep := func(made *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding) {
			if err := g.Keep(ctx, []string{kind.Definition()}, made, binding); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", made.Name, err))
			}
		}
		keep(Policy(kind, g.Namespace, g.Watched))
		keep(Deletions(kind, g.Namespace, g.Watched))
		if len(kind.Owned) > 0 {
			keep(Owners(kind, g.Namespace))
		}
		if len(kind.PodLabels) > 0 {
			keep(PodLabels(kind, g.Namespace, g.Watched))
		}
	}
	return errors.Join(problems...)
}
