package application_test

import (
	"maps"
	"slices"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestRS151AllMembersArePrimaries tests that applications with several primaries get no commands of
// secondaries.
func TestRS151AllMembersArePrimaries(t *testing.T) {
	for _, row := range []struct {
		set  func(...func(*v1alpha1.ReplicatedStatefulSet)) *v1alpha1.ReplicatedStatefulSet
		want []string
	}{
		{fixture.Etcd, []string{"leave", "primary", "seed", "sequence", "status", "stop"}},
		{fixture.RabbitMQ, []string{"leave", "primary", "seed", "sequence", "status", "stop"}},
		{fixture.MariaDBGalera, []string{"primary", "seed", "sequence", "status", "stop"}},
	} {
		set := filled(row.set())
		if got := slices.Sorted(maps.Keys(set.Spec.Pod.Commands)); !slices.Equal(got, row.want) {
			t.Errorf("the commands of %s are %v, want %v", set.Spec.Application.Type, got, row.want)
		}
		whole := spec.WithDefaults(row.set())
		if set.Spec.Primaries != nil || spec.PrimariesWanted(whole) != *whole.Spec.Replicas {
			t.Errorf("not all members of %s are primaries", set.Spec.Application.Type)
		}
	}
}
