package spec

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// WithDefaults sets the defaults of the schema, for objects that were not defaulted by the API
// server, and the labels of a template that has none.
func WithDefaults(set *v1alpha1.StatefulCluster) *v1alpha1.StatefulCluster {
	set = set.DeepCopy()
	spec := &set.Spec
	fill(&spec.Replicas, 1)
	fill(&spec.RevisionHistoryLimit, 10)
	orElse(&spec.PodManagementPolicy, v1alpha1.ParallelPodManagement)
	orElse(&spec.UpdateStrategy.Type, v1alpha1.RollingUpdateStrategy)
	orElse(&spec.UpdateStrategy.InPlace, v1alpha1.InPlaceIfPossible)
	retention := &spec.PersistentVolumeClaimRetentionPolicy
	orElse(&retention.WhenDeleted, v1alpha1.RetainClaims)
	orElse(&retention.WhenScaled, v1alpha1.RetainClaims)
	orElse(&retention.WhenLost, v1alpha1.RetainClaims)
	fill(&spec.Replacement.NodeLostSeconds, DefaultNodeLostSeconds)
	fill(&spec.Replacement.UnreadySeconds, DefaultUnreadySeconds)
	fill(&spec.Replacement.StartupSeconds, DefaultStartupSeconds)
	fill(&spec.Replacement.PendingSeconds, DefaultPendingSeconds)
	orElse(&spec.Replacement.OnEviction, v1alpha1.EvictionReplaces)
	orElse(&spec.Replacement.WhenNoneReady, v1alpha1.NoneReadyHolds)
	fill(&spec.Replacement.MaxConcurrent, intstr.FromString("25%"))
	return set
}

// fill sets a pointer that is nil.
func fill[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// orElse sets a string that is empty.
func orElse[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
