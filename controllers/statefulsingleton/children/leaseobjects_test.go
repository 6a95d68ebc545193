package children_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// TestS51RightsOfOneLease tests that the Role names one Lease, and that its subjects are the given accounts of the
// namespace.
func TestS51RightsOfOneLease(t *testing.T) {
	s := fixture.WorldOf(fixture.HeldByLease()).Object
	lease, role, binding := children.BuildLease(s), children.BuildLeaseRole(s), children.BuildLeaseRoleBinding(s, []string{"app", "default"})
	if lease.Spec.HolderIdentity != nil || *lease.Spec.LeaseTransitions != 0 || lease.Labels[v1.LabelSingleton] != s.Name {
		t.Errorf("the new Lease is %+v", lease)
	}
	if len(role.Rules) != 1 || !equality.Semantic.DeepEqual(role.Rules[0].ResourceNames, []string{lease.Name}) || len(role.Rules[0].Resources) != 1 {
		t.Errorf("the Role allows %+v, want Lease %s", role.Rules, lease.Name)
	}
	if binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != role.Name || len(binding.Subjects) != 2 {
		t.Errorf("the RoleBinding is %+v", binding)
	}
	for _, subject := range binding.Subjects {
		if subject.Kind != "ServiceAccount" || subject.Namespace != s.Namespace {
			t.Errorf("a subject is %+v", subject)
		}
	}
}
