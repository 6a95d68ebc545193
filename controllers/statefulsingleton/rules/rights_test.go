package rules_test

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// TestS51RightsAreRepaired changes the Role and the RoleBinding of an object with fencing by a Lease.
func TestS51RightsAreRepaired(t *testing.T) {
	const replaced = "delete rolebinding db.singleton: Lease, it binds another Role > create rolebinding db.singleton: Lease"
	changed := func(s *fixture.SingletonFixture, change func(*facts.World)) *facts.World {
		return fixture.WorldWith(fixture.LeasedBy(fixture.WorldOf(s, running("a")), "a", 1, time.Second, ""), change)
	}
	more := func(w *facts.World) {
		w.Role.Rules = append(w.Role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	}
	other := func(w *facts.World) { w.RoleBinding.RoleRef.Name = "other" }
	fixture.Check(t, []fixture.Row{
		{"the rules of the Role", changed(fixture.HeldByLease(), more), []string{"patch role db.singleton: Lease"}},
		{"the rules of a Role that outlives its object", changed(fixture.HeldByLease().Goes(), more), []string{
			"patch lease db.singleton: Lease, its pods still use it", "patch role db.singleton: Lease, its pods still use it", "patch rolebinding db.singleton: Lease, its pods still use it"}},
		{"the accounts of the RoleBinding", changed(fixture.HeldByLease(), func(w *facts.World) { w.RoleBinding.Subjects = nil }), []string{"patch rolebinding db.singleton: Lease"}},
		{"the accounts of a RoleBinding without an owner", changed(fixture.HeldByLease(), func(w *facts.World) {
			w.RoleBinding.Subjects, w.RoleBinding.OwnerReferences = nil, nil
		}), []string{"patch rolebinding db.singleton: Lease"}},
		{"the Role of the RoleBinding", changed(fixture.HeldByLease(), other), []string{replaced}},
		{"the kind of that Role", changed(fixture.HeldByLease(), func(w *facts.World) { w.RoleBinding.RoleRef.Kind = "ClusterRole" }), []string{replaced}},
		{"the Role of a RoleBinding that no pod uses", fixture.WorldWith(fixture.LeasedBy(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)), "", 1, time.Second, ""), func(w *facts.World) {
			w.Object.Status.Holder.Lease = "db.singleton"
			w.Lease, w.Role = nil, nil
			w.LeaseSince = fixture.Noon.Add(-time.Hour)
			other(w)
		}), []string{"patch status of statefulsingleton db: Lease, no pod uses it > delete rolebinding db.singleton: Lease, no pod uses it"}},
	})
}
