package spec_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// An object that was created without the schema's defaults is served like any other.
func TestDefaults(t *testing.T) {
	bare := &v1alpha1.StatefulCluster{}
	spec := spec.WithDefaults(bare).Spec
	r := spec.Replacement
	for what, ok := range map[string]bool{
		"SC-4 one replica": *spec.Replicas == 1, "ten revisions": *spec.RevisionHistoryLimit == 10,
		"SC-25 Parallel": spec.PodManagementPolicy == v1alpha1.ParallelPodManagement,
		"RollingUpdate":  spec.UpdateStrategy.Type == v1alpha1.RollingUpdateStrategy, "in place": spec.UpdateStrategy.InPlace == v1alpha1.InPlaceIfPossible,
		"SC-19 claims are retained":         spec.PersistentVolumeClaimRetentionPolicy == v1alpha1.ClaimRetentionPolicy{WhenDeleted: fixture.Keep, WhenScaled: fixture.Keep, WhenLost: fixture.Keep},
		"the deadlines have their defaults": *r.NodeLostSeconds == 30 && *r.UnreadySeconds == 300 && *r.StartupSeconds == 600 && *r.PendingSeconds == 300,
		"onEviction is Replace":             r.OnEviction == v1alpha1.EvictionReplaces, "maxConcurrent is 25%": r.MaxConcurrent.String() == "25%",
	} {
		if !ok {
			t.Errorf("not true: %s", what)
		}
	}
	if bare.Spec.Replicas != nil {
		t.Error("the observed object was modified")
	}
}
