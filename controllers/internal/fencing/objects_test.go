package fencing

import (
	"errors"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var meta = metav1.ObjectMeta{Namespace: "ns", Name: "db.member"}

// TestObjects tests that a new Lease has no holder, that the Role names Leases, and that its subjects are accounts of
// the namespace.
func TestObjects(t *testing.T) {
	lease := BuildLease(meta, 15, 3)
	if HolderOf(lease) != "" || EpochOf(lease) != 3 || *lease.Spec.LeaseDurationSeconds != 15 || lease.Spec.RenewTime != nil {
		t.Errorf("the new Lease is %+v", lease)
	}
	role := BuildRole(meta, "db-0.member", "db-1.member")
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, []string{"db-0.member", "db-1.member"}) ||
		!slices.Equal(role.Rules[0].Resources, []string{"leases"}) || slices.Contains(role.Rules[0].Verbs, "delete") {
		t.Errorf("the Role allows %+v", role.Rules)
	}
	binding := BuildRoleBinding(meta, []string{"app", "default"})
	if binding.RoleRef != (rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: role.Name}) || len(binding.Subjects) != 2 {
		t.Errorf("the RoleBinding is %+v", binding)
	}
	for _, subject := range binding.Subjects {
		if subject.Kind != "ServiceAccount" || subject.Namespace != "ns" {
			t.Errorf("a subject is %+v", subject)
		}
	}
}

func TestHolders(t *testing.T) {
	if HolderOf(nil) != "" || EpochOf(nil) != 0 || HolderOf(&coordinationv1.Lease{}) != "" || EpochOf(&coordinationv1.Lease{}) != 0 {
		t.Error("a Lease without a holder has one")
	}
	held := func(holder string, epoch int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &epoch}}
	}
	if lease := held("a_1", 4); HolderOf(lease) != "a_1" || EpochOf(lease) != 4 {
		t.Errorf("the holder is %s with epoch %d", HolderOf(lease), EpochOf(lease))
	}
	free := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseTransitions: ptr.To(int32(4))}}
	for _, row := range []struct {
		name   string
		want   *coordinationv1.Lease
		answer metav1.Object
		same   bool
	}{
		{"the same", held("a_1", 4), held("a_1", 4), true},
		{"another holder", held("a_1", 4), held("b_1", 4), false},
		{"another epoch", held("a_1", 4), held("a_1", 5), false},
		{"no holder", held("a_1", 4), free, false},
		{"no holder, as wanted", free, free.DeepCopy(), true},
		{"a holder that is not wanted", free, held("a_1", 4), false},
		{"another kind", free, &corev1.Pod{}, false},
	} {
		if err := SameHolder(row.want)(row.answer); (err == nil) != row.same {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestNotPermitted(t *testing.T) {
	if got := NotPermitted(errors.New("no right"), "home"); !strings.HasSuffix(got, "--serviceaccount=home:stateful-operator-controller-manager") {
		t.Errorf("the command is %q", got)
	}
}
