package rules

import (
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// createRights creates the Role and the RoleBinding for these service accounts, if they do not exist. A RoleBinding
// of another Role is replaced, because the API server does not allow to change its roleRef.
func createRights(f *facts.Facts, p *Plan, accounts []string) {
	if f.Role == nil {
		p.Do(action.Chain{{Verb: action.Create, Object: children.BuildLeaseRole(f.Object), Reason: ReasonLease}})
	}
	create := action.Action{Verb: action.Create, Object: children.BuildLeaseRoleBinding(f.Object, accounts), Reason: ReasonLease}
	switch {
	case f.RoleBinding == nil:
		p.Do(action.Chain{create})
	case fencing.BindsAnotherRole(f.RoleBinding):
		p.Do(action.Chain{{Verb: action.Delete, Object: f.RoleBinding, Reason: ReasonLease, Detail: "it binds another Role"}, create})
	}
}

// withOwners returns the actions that set the owners of the Lease and of the rights on it, and that repair the rights.
// A RoleBinding of another Role is not repaired, but replaced.
func withOwners(f *facts.Facts, owners []metav1.OwnerReference, why string) []action.Chain {
	var chains []action.Chain
	for _, obj := range leaseObjects(f) {
		if binding, isBinding := obj.(*rbacv1.RoleBinding); isBinding && fencing.BindsAnotherRole(binding) {
			continue
		}
		next := obj.DeepCopyObject().(facts.Object)
		next.SetOwnerReferences(owners)
		repairRight(f, next)
		if !apiequality.Semantic.DeepEqual(obj, next) {
			chains = append(chains, action.Chain{{Verb: action.Patch, Object: next, From: obj, Unchanged: true, Reason: ReasonLease, Detail: why}})
		}
	}
	return chains
}

// repairRight sets the rules of the Role, and the subjects of the RoleBinding.
func repairRight(f *facts.Facts, obj facts.Object) {
	switch right := obj.(type) {
	case *rbacv1.Role:
		right.Rules = children.BuildLeaseRole(f.Object).Rules
	case *rbacv1.RoleBinding:
		if accounts := leasedAccounts(f.Pods); len(accounts) > 0 {
			right.Subjects = children.BuildLeaseRoleBinding(f.Object, accounts).Subjects
		}
	}
}

// leaseObjects returns the Lease, the Role and the RoleBinding that exist.
func leaseObjects(f *facts.Facts) []facts.Object {
	var all []facts.Object
	if f.Lease != nil {
		all = append(all, f.Lease)
	}
	if f.Role != nil {
		all = append(all, f.Role)
	}
	if f.RoleBinding != nil {
		all = append(all, f.RoleBinding)
	}
	return all
}
