package leaseguard

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/policy/policytest"
)

// TestGuard tests the form of policies. The kinds test the responses of the API server.
func TestGuard(t *testing.T) {
	for _, row := range []struct {
		name      string
		successor string
		handsOver bool
	}{
		{"with a successor", "example.com/next", true},
		{"without a successor", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			guard := Guard{Name: "db-", Label: "example.com/db", Successor: row.successor, IsOperator: `request.userInfo.username == "op"`,
				Created: "created", Changed: "changed", Labels: map[string]string{"a": "b"}}
			policy, binding := guard.Build("home", nil)
			if policy.Name != "db-home" || binding.Name != "db-home" || binding.Labels["a"] != "b" || binding.Spec.MatchResources != nil {
				t.Errorf("the policy is %v, and its binding %v", policy, binding)
			}
			selector := policy.Spec.MatchConstraints.ObjectSelector.MatchExpressions
			if len(selector) != 1 || selector[0].Key != "example.com/db" {
				t.Errorf("the policy selects %v", selector)
			}
			defined := slices.ContainsFunc(policy.Spec.Variables, func(v admissionv1.Variable) bool { return v.Name == "handover" })
			used := strings.Contains(policy.Spec.Validations[1].Expression, "handover")
			if defined != row.handsOver || used != row.handsOver {
				t.Errorf("handovers are defined: %t, allowed: %t", defined, used)
			}
			if policy.Spec.Validations[0].Message != "created" || policy.Spec.Validations[1].Message != "changed" {
				t.Errorf("the validations are %v", policy.Spec.Validations)
			}
			policytest.Compile130(t, &policy.Spec, false)
		})
	}
}
