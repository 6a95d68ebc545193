// Package requester has the API server ask what those may do themselves who create or
// change an object, in the namespace of the object: an operator that makes pods for
// everybody would otherwise lend its own rights.
//
// The check is a ValidatingAdmissionPolicy with an authorizer, so it holds whether the
// operator runs or not, and what cannot be evaluated is refused. It looks at our kinds
// only. What a change leaves as it was is not checked: who may scale need not be allowed
// to make pods, and neither must controllers that write labels.
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

// Kind is a kind whose requesters are asked about.
type Kind struct {
	schema.GroupVersion
	Name, Plural string
	Rights       []Right
	// Free are the fields of spec that ask for no right, and why.
	Free map[string]string
	// Owned are the resources of which the operator takes those that have an object of the
	// kind as their controller.
	Owned []admissionv1.Rule
}

// Definition returns the name of the CustomResourceDefinition of the kind.
func (k Kind) Definition() string { return k.Plural + "." + k.Group }

// policyName is the name of what checks that of a kind, for an operator of that namespace.
func (k Kind) policyName(what, namespace string) string {
	return strings.ToLower(k.Name) + "-" + what + "-" + namespace
}

// Right is one that a requester must have, because the operator uses its own for them.
type Right struct {
	Verb, Group, Resource, Subresource string
	// Does completes "the operator … for it".
	Does string
	// Fields are what asks for it: paths below spec. Without any of them it is not asked.
	Fields []string
	// If is a CEL expression over spec without which Fields ask for nothing; empty always
	// holds.
	If string
	// Annotations of the object ask for it as well: they are orders.
	Annotations []string
	// Copied is true when the labels and annotations of the object go into pods. A change of
	// one asks for it, but of annotations whose keys begin with a prefix of NotCopied.
	Copied    bool
	NotCopied []string
	// Created is true when each object asks for it when it is created, whatever its spec is.
	Created bool
}

// question returns the arguments by which kubectl auth can-i asks about the right. It takes
// pods/exec for a pod of that name.
func (r Right) question() string {
	if r.Subresource == "" {
		return r.name()
	}
	of := r
	of.Subresource = ""
	return of.name() + " --subresource=" + r.Subresource
}

// name is the right in words: create pods/exec.
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

// asked is the CEL expression of what an object asks for: a list with an empty list for
// each field that is not there.
func (r Right) asked(object string) string {
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

// ownSpec is the spec of the object, and not one within it.
var ownSpec = regexp.MustCompile(`(^|[^.\w])spec\.`)

// present is the CEL expression that a path below spec is there.
func present(object, field string) string {
	at := object + ".spec"
	terms := []string{"has(" + at + ")"}
	for part := range strings.SplitSeq(field, ".") {
		at += "." + part
		terms = append(terms, "has("+at+")")
	}
	return strings.Join(terms, " && ")
}

// keeps is the CEL expression that a change leaves alone what is copied into pods. Who
// creates an object is asked by its spec.
func (r Right) keeps() string {
	var copied []string
	for _, prefix := range r.NotCopied {
		copied = append(copied, fmt.Sprintf("!k.startsWith(%q)", prefix))
	}
	of := func(object string) string { return wordsOf(object, "annotations") }
	// A comparison of whole maps is cheap however many there are. Key by key it is not: the API
	// server gives up on some ten thousand, and nobody could change the object any more.
	few := fmt.Sprintf("size(%[1]s) <= %[3]d && size(%[2]s) <= %[3]d", of("object"), of("oldObject"), maxAnnotations)
	within := func(a, b string) string {
		return fmt.Sprintf("%[1]s.all(k, !(%[3]s) || (k in %[2]s && %[2]s[k] == %[1]s[k]))", of(a), of(b), strings.Join(append(copied, "true"), " && "))
	}
	return "oldObject == null || (object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && (" +
		of("object") + " == " + of("oldObject") + " || " + few + " && " + within("object", "oldObject") + " && " + within("oldObject", "object") + "))"
}

// what is what of an object asks for the right, in words.
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
		words = append(words, "a change of metadata.labels or metadata.annotations, which go into pods,")
	}
	return strings.Join(words, ", ")
}

func (r Right) check() string {
	subresource := ""
	if r.Subresource != "" {
		subresource = fmt.Sprintf(".subresource(%q)", r.Subresource)
	}
	return fmt.Sprintf("authorizer.group(%q).resource(%q)%s.namespace(request.namespace).check(%q).allowed()", r.Group, r.Resource, subresource, r.Verb)
}

// Policy is what the API server checks for a kind. An operator of that namespace wrote it,
// for the namespaces that it acts in; none are all.
func Policy(kind Kind, namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	made := kind.policy("requester", namespace, watched, admissionv1.Create, admissionv1.Update)
	made.Spec.Validations = []admissionv1.Validation{elsewhere(kind, namespace), small("labels", MaxLabels), small("annotations", maxAnnotations), short()}
	for i, right := range kind.Rights {
		now, before := fmt.Sprintf("asked%d", i), fmt.Sprintf("had%d", i)
		made.Spec.Variables = append(made.Spec.Variables,
			admissionv1.Variable{Name: now, Expression: right.asked("object")},
			admissionv1.Variable{Name: before, Expression: "oldObject == null ? [] : " + right.asked("oldObject")})
		// A field that is removed has an effect as one that is set. What is no longer asked for
		// because of another field, such as a retention policy that is not Delete any more, is free.
		nothing := fmt.Sprintf("!variables.%s.exists(f, size(f) > 0)", now)
		if right.If == "" {
			nothing = "oldObject == null && " + nothing
		}
		unasked := fmt.Sprintf("%[3]s || variables.%[1]s == variables.%[2]s", now, before, nothing)
		if right.Copied {
			unasked = right.keeps()
		}
		made.Spec.Validations = append(made.Spec.Validations, admissionv1.Validation{
			Expression: fmt.Sprintf("%s || %s", unasked, right.check()),
			Message:    fmt.Sprintf("you may not %s in this namespace, which the operator does for a %s", right.name(), kind.Name),
			MessageExpression: fmt.Sprintf(`"the operator %s for a %s, and " + request.userInfo.username + " may not %s in namespace " + request.namespace + `+
				`". Ask for a role with that verb (%s asks for it). To look: kubectl auth can-i %s -n " + request.namespace + " --as=" + request.userInfo.username`,
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

// Deletions returns the policy that refuses the deletion of an object whose
// spec.deletionProtection is true. It is in force while the operator does not run. In a
// namespace that is being deleted nothing is refused: the namespace controller deletes the
// pods and claims in any case, and only the object would stay.
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

// Owners is what the API server checks of objects that say that one of the kind is their
// controller. The operator would take a pod for a member, and retire another for it. As
// admission plugin OwnerReferencesPermissionEnforcement has it, who writes such an owner
// must be allowed to update the finalizers of the kind, as the operator is.
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
			Expression: fmt.Sprintf(`(request.operation == "UPDATE" && %s) || authorizer.group(%q).resource(%q).subresource("finalizers").namespace(request.namespace).check("update").allowed()`,
				same, kind.Group, kind.Plural),
			MessageExpression: fmt.Sprintf(`"the operator takes what has a %s as its controller for its own, and " + request.userInfo.username + " may not update %s/finalizers in namespace " + request.namespace + ". Leave that owner out"`,
				kind.Name, kind.Plural),
			Message: fmt.Sprintf("you may not update %s/finalizers in this namespace, so you cannot make what has a %s as its controller; leave that owner out", kind.Plural, kind.Name),
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

// The max number of labels and of annotations of an object. The API server bounds neither, and both
// are in the memory of the operator.
const (
	MaxLabels      = 64
	maxAnnotations = 256
)

// wordsOf returns the CEL expression of the labels or annotations of an object.
func wordsOf(object, kind string) string {
	return fmt.Sprintf("%s.metadata.?%s.orValue({})", object, kind)
}

// small refuses an object with more labels or annotations than that. One that has them already may be
// changed otherwise.
func small(kind string, most int) admissionv1.Validation {
	of := func(object string) string { return wordsOf(object, kind) }
	return admissionv1.Validation{
		Expression: fmt.Sprintf("size(%s) <= %d || oldObject != null && size(%s) <= size(%s)", of("object"), most, of("object"), of("oldObject")),
		Message:    fmt.Sprintf("metadata.%s: there may be at most %d; remove the others", kind, most),
		Reason:     ptr.To(metav1.StatusReasonInvalid),
	}
}

// MaxAnnotationBytes is the max bytes of the annotations of an object, keys and values together, without
// the copy that kubectl apply keeps. With 64 labels they are what the cache keeps of an object: one that
// passes here is served (package unread).
const MaxAnnotationBytes = 64 << 10

// short refuses an object with longer annotations than that. One that has them already may be changed
// otherwise. Annotations that are too many are not added up: that would cost more than a policy may.
func short() admissionv1.Validation {
	of := func(object string) string { return wordsOf(object, "annotations") }
	bytes := func(object string) string {
		return fmt.Sprintf("%[1]s.map(k, k == %[2]q ? 0 : size(bytes(k)) + size(bytes(%[1]s[k]))).sum()", of(object), corev1.LastAppliedConfigAnnotation)
	}
	return admissionv1.Validation{
		Expression: fmt.Sprintf("size(%[1]s) > %[2]d || %[3]s <= %[4]d || oldObject != null && (size(%[5]s) > %[2]d || %[3]s <= %[6]s)",
			of("object"), maxAnnotations, bytes("object"), MaxAnnotationBytes, of("oldObject"), bytes("oldObject")),
		Message: fmt.Sprintf("metadata.annotations: keys and values may have at most %d bytes together; shorten or remove them", MaxAnnotationBytes),
		Reason:  ptr.To(metav1.StatusReasonInvalid),
	}
}

// elsewhere keeps objects out of two namespaces: who may edit the operator's own has its
// account, and what the cluster itself runs on is nobody's to hold up.
func elsewhere(kind Kind, namespace string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression: fmt.Sprintf("request.operation != \"CREATE\" || !(request.namespace in [%q, %q])", metav1.NamespaceSystem, namespace),
		Message: fmt.Sprintf("a %s cannot be in namespace %s, nor in %s, the operator's own: who may make pods there has the accounts of the cluster or of the operator. Use another namespace",
			kind.Name, metav1.NamespaceSystem, namespace),
		Reason: ptr.To(metav1.StatusReasonForbidden),
	}
}

// Guard keeps the policies of kinds. Only the leader does.
type Guard struct {
	policy.Keeper
	Kinds []Kind
	// Namespace is the operator's own.
	Namespace string
	// Watched are the namespaces that it acts in; none are all.
	Watched []string
}

// Start keeps the policies until ctx ends.
func (g *Guard) Start(ctx context.Context) error {
	policy.Look(ctx, "The policies that check requesters", policy.Interval, policy.Interval, func() string { return policy.Problem(g.keepAll(ctx)) })
	return nil
}

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
	}
	return errors.Join(problems...)
}
