package spec_test

import (
	"fmt"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestPolicies checks what follows from the numbers of a set.
func TestPolicies(t *testing.T) {
	bare := func(replicas, primaries int32) *v1alpha1.ReplicatedStatefulSet {
		set := fixture.SetOf(replicas, primaries)
		set.Spec.Pod.VolumeClaimTemplates = nil
		return set
	}
	allowing := fixture.SetOf(3, 1)
	allowing.Spec.EvictionPolicy = v1alpha1.EvictionAllow
	stopped := fixture.SetOf(0, 1)
	stopped.Status.RestoreReplicas = 3
	for _, r := range []struct {
		name                      string
		set                       *v1alpha1.ReplicatedStatefulSet
		primaries                 int32
		exclusive, follows, hands bool
	}{
		{"one primary of three", fixture.SetOf(3, 1), 1, true, true, true},
		{"no command secondary", fixture.SetOf(3, 1, v1alpha1.CommandSecondary), 1, true, false, false},
		{"all members are primary", fixture.SetOf(3, 3), 3, true, false, false},
		{"all members are primary, and have no claims", bare(3, 3), 3, false, false, false},
		{"more primaries than members", bare(2, 5), 2, false, false, false},
		{"evictions are allowed", allowing, 1, true, true, false},
		{"a stopped set that had three members", stopped, 0, true, true, true},
	} {
		if got := spec.PrimariesWanted(r.set); got != r.primaries {
			t.Errorf("%s: %d primaries", r.name, got)
		}
		if spec.NeedsFinalizer(r.set) != r.exclusive || spec.HasSecondaries(r.set) != r.follows || spec.HandsOver(r.set) != r.hands {
			t.Errorf("%s: exclusive %t, secondaries %t, hands over %t", r.name, spec.NeedsFinalizer(r.set), spec.HasSecondaries(r.set), spec.HandsOver(r.set))
		}
	}
}

func TestMembersInMaintenance(t *testing.T) {
	set := fixture.SetOf(3, 1)
	set.Spec.Maintenance = []string{"rss-db-10", "rss-db-2", "other-0", "rss-db-2"}
	if got := fmt.Sprint(spec.Maintained(set)); got != "[rss-db-2 rss-db-10]" {
		t.Errorf("%s", got)
	}
	if !spec.IsListed(set, "rss-db-2") || spec.IsListed(set, "rss-db-1") {
		t.Error("the wrong members are listed")
	}
	at := fixture.MetaTime(0)
	set.DeletionTimestamp = &at
	if len(spec.Maintained(set)) > 0 || spec.IsListed(set, "rss-db-2") {
		t.Error("members of a terminating set are in maintenance")
	}
}

func TestWhoUsesTheEpoch(t *testing.T) {
	if spec.UsesEpoch(fixture.SetOf(3, 1)) || !spec.UsesEpoch(fixture.FencedSet(3, 1)) {
		t.Error("only commands with the epoch use it")
	}
}
