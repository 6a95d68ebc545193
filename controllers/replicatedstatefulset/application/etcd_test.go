package application_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestRS151AllMembersOfEtcdArePrimaries tests that etcd gets no commands of secondaries, and a command
// leave.
func TestRS151AllMembersOfEtcdArePrimaries(t *testing.T) {
	set := filled(fixture.Etcd())
	got := slices.Sorted(maps.Keys(set.Spec.Pod.Commands))
	if want := []string{"leave", "primary", "seed", "sequence", "status", "stop"}; !slices.Equal(got, want) {
		t.Errorf("the commands are %v, want %v", got, want)
	}
	if set.Spec.Primaries != nil || spec.PrimariesWanted(spec.WithDefaults(fixture.Etcd())) != *spec.WithDefaults(fixture.Etcd()).Spec.Replicas {
		t.Error("not all members are primaries")
	}
}

func TestRS151AnEvenNumberOfMembersOfEtcd(t *testing.T) {
	for replicas, warns := range map[int32]bool{0: false, 1: false, 2: true, 3: false, 4: true} {
		set := fixture.Etcd(func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = &replicas })
		got := strings.Join(application.Warnings(set), "; ")
		if strings.Contains(got, "set an odd number") != warns {
			t.Errorf("%d replicas: %q", replicas, got)
		}
	}
}
