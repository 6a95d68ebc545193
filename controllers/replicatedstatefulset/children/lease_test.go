package children_test

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestLeasesOfMembers(t *testing.T) {
	set, m := fixture.SetOf(2, 1), fixture.Pod(1).Unleased()
	lease := children.BuildLease(set, m.Pod, m.CommandsIn, 3)
	if lease.Name != "rss-db-1.member" || lease.Labels[v1alpha1.LabelLease] != "db" || len(lease.OwnerReferences) != 1 {
		t.Errorf("the Lease is %+v", lease.ObjectMeta)
	}
	if lease.Spec.HolderIdentity != nil || *lease.Spec.LeaseTransitions != 3 || *lease.Spec.LeaseDurationSeconds != fixture.LeaseSeconds {
		t.Errorf("the Lease has %+v", lease.Spec)
	}
	if pod, ok := children.PodOfLease(lease.Name); !ok || pod != "rss-db-1" {
		t.Errorf("it is the Lease of %q, %t", pod, ok)
	}
	if _, ok := children.PodOfLease("db.singleton"); ok {
		t.Error("the Lease of a StatefulSingleton is that of a member")
	}
	role, binding := children.BuildLeaseRole(set, []string{"rss-db-0", "rss-db-1"}), children.BuildLeaseRoleBinding(set, []string{"default"})
	if role.Name != binding.Name || role.Name != "rss-db.member" || !slices.Equal(role.Rules[0].ResourceNames, []string{"rss-db-0.member", "rss-db-1.member"}) {
		t.Errorf("the Role is %+v, and the RoleBinding %+v", role, binding)
	}
}

func TestWhichPodsHaveLeases(t *testing.T) {
	leased, other := fixture.Pod(0).Unleased(), fixture.Pod(1)
	if d := children.LeaseDuration(leased.Pod, "main"); d != fixture.LeaseSeconds*time.Second || children.AgentOf(leased.Pod, "main") != fixture.AgentPath {
		t.Errorf("a pod with a Lease has duration %s, and agent %q", d, children.AgentOf(leased.Pod, "main"))
	}
	if children.LeaseDuration(other.Pod, "main") != 0 || children.LeaseDuration(leased.Pod, "other") != 0 || children.AgentOf(other.Pod, "main") != "" {
		t.Error("a container without a Lease has one")
	}
}
