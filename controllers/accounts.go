package controllers

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
)

// accountGuard maintains admission policies for the operator's own accounts. They limit what a
// stolen token allows to less than the roles grant.
type accountGuard struct {
	policy.Keeper
	// name is the prefix of the names in config/. namespace is the operator's own namespace.
	name, namespace string
	// kinds are the served kinds. watched are the namespaces that the operator acts in; empty means
	// all.
	kinds   []requester.Kind
	watched []string
}

// Start maintains the policies until ctx ends.
func (g *accountGuard) Start(ctx context.Context) error {
	policy.Look(ctx, "The policies on the operator's own accounts", policy.Interval, policy.Interval, func() string { return policy.Problem(g.keepAll(ctx)) })
	return nil
}

func (g *accountGuard) keepAll(ctx context.Context) error {
	var problems []error
	for _, rule := range accountRules(g.name, g.namespace) {
		made, binding := rule.build(g.name, g.namespace)
		if err := g.Keep(ctx, g.definitions(), made, binding); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", made.Name, err))
		}
	}
	if len(g.watched) == 0 {
		return errors.Join(problems...) // ClusterRoleBindings outlive every namespace
	}
	for _, kind := range g.kinds {
		made, binding := rightsPolicy(kind, g.name, g.namespace, g.watched)
		if err := g.Keep(ctx, []string{kind.Definition()}, made, binding); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", made.Name, err))
		}
	}
	return errors.Join(problems...)
}

// definitions returns the CRD names of the served kinds. The policies on the accounts are deleted
// with the last of them: an administrator may delete a CRD that is not used.
func (g *accountGuard) definitions() (names []string) {
	for _, kind := range g.kinds {
		names = append(names, kind.Definition())
	}
	return names
}

// accountRule forbids operations to one account, even if its roles grant them.
type accountRule struct {
	account string
	// topic is part of the name of the policy. An account can have several rules.
	topic      string
	operations []admissionv1.OperationType
	resources  []admissionv1.Rule
	// namespaces are the namespaces of the rule; empty means all.
	namespaces  []string
	validations []admissionv1.Validation
}

// policyName returns the name of the policy, and of its binding.
func (r accountRule) policyName(namespace string) string {
	return r.account + "-" + r.topic + "-" + namespace
}

// accountRules returns the rules of the operator's accounts.
func accountRules(name, namespace string) []accountRule {
	return []accountRule{controllersRule(name, namespace), fencingRule(name, namespace), webhooksRule(name, namespace)}
}

// accountPolicies returns the names of the policies on the operator's accounts.
func accountPolicies(name, namespace string) (names []string) {
	for _, rule := range accountRules(name, namespace) {
		names = append(names, rule.policyName(namespace))
	}
	return names
}

func (r accountRule) build(name, namespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	meta := metav1.ObjectMeta{Name: r.policyName(namespace), Labels: map[string]string{"app.kubernetes.io/managed-by": name}}
	selector := &metav1.LabelSelector{}
	if len(r.namespaces) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: r.namespaces}}
	}
	made := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: selector, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionv1.Equivalent),
		},
		MatchConditions: []admissionv1.MatchCondition{{Name: "account",
			Expression: fmt.Sprintf("request.userInfo.username == %q", "system:serviceaccount:"+namespace+":"+r.account)}},
		Validations: r.validations,
	}}
	for _, rule := range r.resources {
		rule.APIVersions, rule.Scope = []string{"*"}, ptr.To(admissionv1.NamespacedScope)
		made.Spec.MatchConstraints.ResourceRules = append(made.Spec.MatchConstraints.ResourceRules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: r.operations, Rule: rule}})
	}
	return made, policy.Deny(made)
}

// controllersRule denies the controllers writes in namespaces in which a pod would give control of
// the cluster or the operator. Pods there that have a finalizer of the operator, from before the
// namespaces were refused, can be released: the finalizer is removed, and a waiting pod is granted.
// Nothing else may change. An added owner reference to an object that does not exist would make the
// garbage collector delete the dependent, a changed label removes a pod from its Service, and
// annotations configure load balancers and other controllers.
func controllersRule(name, namespace string) accountRule {
	releases := fmt.Sprintf(`request.operation == "UPDATE" && !has(request.subResource) && request.resource.resource == "pods"
  && has(object.spec) && object.spec == oldObject.spec
  && object.metadata.?labels == oldObject.metadata.?labels
  && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
  && object.metadata.?finalizers.orValue([]).all(f, f in oldObject.metadata.?finalizers.orValue([]))
  && oldObject.metadata.?finalizers.orValue([]).all(f, f in [%q, %q] || f in object.metadata.?finalizers.orValue([]))
  && (object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})
    || oldObject.metadata.?annotations.orValue({}).all(k, k in object.metadata.?annotations.orValue({}))
    && object.metadata.?annotations.orValue({}).all(k, k == %q
      || k in oldObject.metadata.?annotations.orValue({}) && object.metadata.annotations[k] == oldObject.metadata.annotations[k]))`,
		statefulsingletonv1.FinalizerPod, clusterlabsv1alpha1.FinalizerMember, statefulsingletonv1.AnnotationGrant)
	// A Secret of another type could be filled with the token of an account, such as the
	// installer's.
	const hashKey = `request.operation == "CREATE" && request.namespace == %q && request.resource.resource == "secrets" && object.metadata.name == %q
  && has(object.type) && object.type == "Opaque"`
	return accountRule{
		account:    name + "-controller-manager",
		topic:      "account",
		operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect},
		resources: []admissionv1.Rule{
			{APIGroups: []string{""}, Resources: []string{"pods", "pods/exec", "pods/resize", "pods/status", "persistentvolumeclaims", "services", "configmaps", "secrets"}},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "replicasets", "controllerrevisions"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}},
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}},
		},
		namespaces: []string{metav1.NamespaceSystem, namespace},
		validations: []admissionv1.Validation{{
			Expression: "(" + releases + ") || (" + fmt.Sprintf(hashKey, namespace, name+"-config-key") + ")",
			Message: fmt.Sprintf("the controllers of %s change nothing in namespaces %s and %s: a user who can create pods there can use the service accounts of the cluster or of the operator. Move the object to another namespace",
				name, metav1.NamespaceSystem, namespace),
			Reason: ptr.To(metav1.StatusReasonForbidden),
		}},
	}
}

// fencingRule restricts the Leases, Roles and RoleBindings that the controllers write for fencing.
// Roles cannot grant permissions by a part of a name. Without the rule, a stolen token could stop
// other leader elections, change heartbeats of Nodes, and delete any Role. The Lease of the
// controllers' own leader election is allowed.
func fencingRule(name, namespace string) accountRule {
	const (
		ownLease = `request.resource.resource == "leases" && request.operation != "DELETE" && request.namespace == %q && object.metadata.name == %q`
		// A name is that of the object before a DELETE, and otherwise that of the new object.
		named = `!(request.namespace in [%q, %q])
  && (request.operation == "DELETE" ? oldObject.metadata.name.matches(%[3]q) : object.metadata.name.matches(%[3]q))`
		names = "[.](singleton|member)$"
		roles = `request.resource.resource != "roles" || request.operation == "DELETE" || object.rules.all(r,
  r.?apiGroups.orValue([]) == ["coordination.k8s.io"] && r.?resources.orValue([]) == ["leases"]
  && r.?resourceNames.orValue([]).size() > 0 && r.?resourceNames.orValue([]).all(n, n.matches(%q))
  && r.verbs.all(v, v in ["get", "watch", "update", "patch"]))`
		bindings = `request.resource.resource != "rolebindings" || request.operation == "DELETE"
  || (object.roleRef.kind == "Role" && object.roleRef.name == object.metadata.name
    && object.?subjects.orValue([]).all(s, s.kind == "ServiceAccount" && s.?namespace.orValue("") == request.namespace))`
	)
	validation := func(expression, message string) admissionv1.Validation {
		return admissionv1.Validation{Expression: expression, Message: "the controllers of " + name + " " + message, Reason: ptr.To(metav1.StatusReasonForbidden)}
	}
	return accountRule{
		account:    name + "-controller-manager",
		topic:      "fencing",
		operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
		resources: []admissionv1.Rule{
			{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}},
		},
		validations: []admissionv1.Validation{
			validation("("+fmt.Sprintf(ownLease, namespace, name)+") || ("+fmt.Sprintf(named, metav1.NamespaceSystem, namespace, names)+")",
				fmt.Sprintf("write Leases, Roles and RoleBindings only with names that end with .singleton or .member, and none in namespaces %s and %s", metav1.NamespaceSystem, namespace)),
			validation(fmt.Sprintf(roles, names), "write Roles only to get, watch, update and patch Leases whose names end with .singleton or .member"),
			validation(bindings, "write RoleBindings only for the Role with the same name, and for service accounts of the same namespace"),
		},
	}
}

// webhooksRule allows the webhooks only dry-run creates, to find out what would be refused, and
// writes to the ConfigMap of evictions.
func webhooksRule(name, namespace string) accountRule {
	const (
		dryRun = `request.operation == "CREATE" && has(request.dryRun) && request.dryRun`
		book   = `request.operation in ["CREATE", "UPDATE"] && request.namespace == %q && request.resource.resource == "configmaps" && object.metadata.name == %q`
	)
	return accountRule{
		account:    name + "-webhook",
		topic:      "account",
		operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect},
		resources: []admissionv1.Rule{
			{APIGroups: []string{""}, Resources: []string{"pods", "pods/exec", "persistentvolumeclaims", "services", "configmaps", "secrets"}},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}},
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}},
		},
		validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf("("+dryRun+") || ("+book+")", namespace, evictionBook(name)),
			Message:    "the webhooks of " + name + " create objects by dry run only",
			Reason:     ptr.To(metav1.StatusReasonForbidden),
		}},
	}
}
