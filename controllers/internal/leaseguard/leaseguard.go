// Package leaseguard builds ValidatingAdmissionPolicies on Leases that fence pods. It is not part of package fencing,
// which has no dependencies on clients.
package leaseguard

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
)

// The API server adds these to the user of a token of a pod.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// Guard describes the policy on the Leases of a kind: all pods of an object may have the same service account, and
// RBAC cannot distinguish them. Only the pod that holds a Lease may renew it, or hand it over to the pod that the
// operator has named.
type Guard struct {
	// Name is the prefix of the name of the policy. The namespace of the operator follows.
	Name string
	// Label is on all Leases of the kind. A Lease without it is not checked, so that the Leases of others never
	// depend on the policy.
	Label string
	// Successor is the annotation that names the pod to which the holder may hand over. If it is empty, a holder
	// may only renew.
	Successor string
	// IsOperator is the CEL expression that the requester is the operator. It may change all.
	IsOperator string
	// Created and Changed are the messages to others who create or change a Lease.
	Created, Changed string
	// Labels are those of the policy and its binding.
	Labels map[string]string
}

// Build builds the policy and its binding for the watched namespaces, or for all if there are none.
func (g Guard) Build(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	ours := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: g.Label, Operator: metav1.LabelSelectorOpExists}}}
	allowed := "variables.renewal || variables.unchanged || "
	if g.Successor != "" {
		allowed = "variables.renewal || variables.handover || variables.unchanged || "
	}
	made := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name + namespace, Labels: g.Labels},
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
			Variables: g.variables(),
			Validations: []admissionv1.Validation{
				{Expression: `request.operation != "CREATE" || ` + g.IsOperator, Message: g.Created, Reason: ptr.To(metav1.StatusReasonForbidden)},
				{Expression: `request.operation != "UPDATE" || ` + allowed + g.IsOperator, Message: g.Changed, Reason: ptr.To(metav1.StatusReasonForbidden)},
			},
		}}
	binding := policy.Deny(made)
	policy.Limit(binding, namespace, watched)
	return made, binding
}

// variables returns the variables of the policy. Only updates use those of oldObject.
func (g Guard) variables() []admissionv1.Variable {
	all := []admissionv1.Variable{
		{Name: "requester", Expression: extraCEL(extraPodName) + ` + "_" + ` + extraCEL(extraPodUID)},
		{Name: "annotations", Expression: `object.metadata.?annotations.orValue({})`},
		{Name: "oldAnnotations", Expression: `oldObject.metadata.?annotations.orValue({})`},
	}
	sameAnnotations, sameNext := `variables.annotations == variables.oldAnnotations`, ""
	if g.Successor != "" {
		all = append(all,
			admissionv1.Variable{Name: "next", Expression: policy.AnnotationCEL("object", g.Successor)},
			admissionv1.Variable{Name: "oldNext", Expression: policy.AnnotationCEL("oldObject", g.Successor)})
		sameAnnotations = fmt.Sprintf(`variables.annotations.all(k, k == %[1]q || k in variables.oldAnnotations && variables.annotations[k] == variables.oldAnnotations[k]) && `+
			`variables.oldAnnotations.all(k, k == %[1]q || k in variables.annotations)`, g.Successor)
		sameNext = ` && variables.next == variables.oldNext`
	}
	all = append(all, []admissionv1.Variable{
		{Name: "holder", Expression: `object.?spec.holderIdentity.orValue("")`},
		{Name: "oldHolder", Expression: `oldObject.?spec.holderIdentity.orValue("")`},
		{Name: "epoch", Expression: `object.?spec.leaseTransitions.orValue(0)`},
		{Name: "oldEpoch", Expression: `oldObject.?spec.leaseTransitions.orValue(0)`},
		{Name: "seconds", Expression: `object.?spec.leaseDurationSeconds.orValue(0)`},
		{Name: "sameAnnotations", Expression: sameAnnotations},
		{Name: "sameMeta", Expression: `variables.sameAnnotations && object.metadata.?labels == oldObject.metadata.?labels && ` +
			`object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences && object.metadata.?finalizers == oldObject.metadata.?finalizers`},
		{Name: "unchanged", Expression: `variables.sameMeta` + sameNext + ` && object.?spec == oldObject.?spec`},
		{Name: "byHolder", Expression: fmt.Sprintf(`variables.oldHolder != "" && variables.oldHolder == variables.requester && variables.sameMeta && `+
			`variables.seconds >= %d && variables.seconds <= %d && `+
			`object.?spec.strategy == oldObject.?spec.strategy && object.?spec.preferredHolder == oldObject.?spec.preferredHolder`, fencing.MinSeconds, fencing.MaxSeconds)},
		{Name: "renewal", Expression: `variables.byHolder && variables.holder == variables.oldHolder && variables.epoch == variables.oldEpoch` + sameNext},
	}...)
	if g.Successor == "" {
		return all
	}
	return append(all, admissionv1.Variable{Name: "handover", Expression: fmt.Sprintf(`variables.byHolder && variables.oldNext != "" && variables.holder == variables.oldNext && `+
		`variables.epoch == variables.oldEpoch + 1 && !(%q in variables.annotations)`, g.Successor)})
}

// extraCEL returns the CEL expression of an attribute of the requester, or "".
func extraCEL(name string) string {
	return fmt.Sprintf(`(has(request.userInfo.extra) && %[1]q in request.userInfo.extra && size(request.userInfo.extra[%[1]q]) == 1 ? request.userInfo.extra[%[1]q][0] : "")`, name)
}
