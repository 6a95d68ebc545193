package spec

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// MaxReplicas is the max number of members of a set.
const MaxReplicas = 20000

// Settings computes the settings of a set from its spec, which must have defaults.
type Settings struct{ Set *v1alpha1.StatefulCluster }

// HoldsInOutage reports whether members with data are kept, and not replaced, while no member is Ready.
func (s Settings) HoldsInOutage() bool {
	return s.Set.Spec.Replacement.WhenNoneReady != v1alpha1.NoneReadyReplaces
}

// share returns a number, or a percentage of whole, at most MaxReplicas.
func share(v intstr.IntOrString, whole int, roundUp bool) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, whole, roundUp)
	if err != nil {
		return 0
	}
	return min(max(0, n), MaxReplicas)
}

// Replicas returns spec.replicas.
func (s Settings) Replicas() int { return int(*s.Set.Spec.Replicas) }

// MaxConcurrent returns how many members may be in replacement at the same time.
func (s Settings) MaxConcurrent() int {
	return max(1, share(*s.Set.Spec.Replacement.MaxConcurrent, s.Replicas(), false))
}

// Parallel reports whether members are created without waiting for each other.
func (s Settings) Parallel() bool {
	return s.Set.Spec.PodManagementPolicy == v1alpha1.ParallelPodManagement
}

// OrderedReady reports whether members are created one at a time.
func (s Settings) OrderedReady() bool {
	return s.Set.Spec.PodManagementPolicy == v1alpha1.OrderedReadyPodManagement
}

// Rolling reports whether the operator updates members automatically.
func (s Settings) Rolling() bool {
	return s.Set.Spec.UpdateStrategy.Type == v1alpha1.RollingUpdateStrategy
}

// rollingUpdate returns spec.updateStrategy.rollingUpdate, or its zero value.
func (s Settings) rollingUpdate() v1alpha1.RollingUpdate {
	return ptr.Deref(s.Set.Spec.UpdateStrategy.RollingUpdate, v1alpha1.RollingUpdate{})
}

// Partition returns the number of members that an update leaves at their revision.
func (s Settings) Partition() int { return int(s.rollingUpdate().Partition) }

// MaxUnavailable returns how many members an update may make unavailable at the same time. It is at
// least 1 if maxSurge is 0, since otherwise no update could proceed.
func (s Settings) MaxUnavailable() int {
	n := share(ptr.Deref(s.rollingUpdate().MaxUnavailable, intstr.FromInt32(1)), s.Replicas(), true)
	if n == 0 && s.MaxSurge() == 0 {
		return 1
	}
	return n
}

// MaxSurge returns how many members an update may add before it retires old ones; 0 if members are
// updated under their names.
func (s Settings) MaxSurge() int {
	if !s.Rolling() {
		return 0
	}
	return share(ptr.Deref(s.rollingUpdate().MaxSurge, intstr.FromInt32(0)), s.Replicas(), true)
}

// ReplacesFirst reports whether evictions are refused, and members on cordoned Nodes are retired
// only after a new member is available.
func (s Settings) ReplacesFirst() bool {
	return s.Set.Spec.Replacement.OnEviction == v1alpha1.EvictionReplacesFirst
}

// MaxExtra returns the max number of members above the replicas: those that a surge update adds.
// With onEviction ReplaceFirst it is at least one, since otherwise no drain could complete.
func (s Settings) MaxExtra() int {
	if s.ReplacesFirst() {
		return max(1, s.MaxSurge())
	}
	return s.MaxSurge()
}

// Retention returns the retention policy of claims.
func (s Settings) Retention() v1alpha1.ClaimRetentionPolicy {
	return s.Set.Spec.PersistentVolumeClaimRetentionPolicy
}

// DeletesClaims reports whether claims are deleted with the set.
func (s Settings) DeletesClaims() bool { return s.Retention().WhenDeleted == v1alpha1.DeleteClaims }

// NameOf returns the name of the member with the given id.
func (s Settings) NameOf(id string) string { return s.Set.Name + "-" + id }

// IDOf returns the id of the member with the given name.
func (s Settings) IDOf(name string) string { return strings.TrimPrefix(name, s.Set.Name+"-") }
