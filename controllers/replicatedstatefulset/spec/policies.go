package spec

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// PrimariesWanted returns how many members should be primary.
func PrimariesWanted(set *v1alpha1.ReplicatedStatefulSet) int32 {
	return min(ptr.Deref(set.Spec.Primaries, *set.Spec.Replicas), *set.Spec.Replicas)
}

// NeedsFinalizer reports whether two pods of the same name, the force-deleted one and its
// replacement, could do harm if both run: as a primary too many, or as two programs on one claim.
// Then pods have a finalizer, which the StatefulSet controller copies from the template. So a pod
// is not gone, and not replaced under its name, before the kubelet has reported its containers as
// stopped.
func NeedsFinalizer(set *v1alpha1.ReplicatedStatefulSet) bool {
	return PrimariesWanted(set) <= 1 || PrimariesWanted(set) < *set.Spec.Replicas || len(set.Spec.Pod.VolumeClaimTemplates) > 0
}

// Three functions report whether there are secondaries. HasSecondaries decides about the Service of
// the secondaries, HandsOver about the budgets, both by the spec, so that the children of a stopped
// set stay. HasFollowers decides about roles, by the present number of wanted members.

// HasSecondaries reports whether a member of the set can be a secondary. A stopped set uses its
// former number of members.
func HasSecondaries(set *v1alpha1.ReplicatedStatefulSet) bool {
	_, follow := set.Spec.Pod.Commands[v1alpha1.CommandSecondary]
	return follow && PrimariesWanted(set) < cmp.Or(*set.Spec.Replicas, set.Status.RestoreReplicas)
}

// HandsOver reports whether primaries are protected from eviction until another member has their
// role. Without followers, no member can take it. A stopped set uses its former number of members.
func HandsOver(set *v1alpha1.ReplicatedStatefulSet) bool {
	if set.Spec.EvictionPolicy == v1alpha1.EvictionAllow || set.Spec.Primaries == nil {
		return false
	}
	if _, follow := set.Spec.Pod.Commands[v1alpha1.CommandSecondary]; !follow {
		return false
	}
	return *set.Spec.Primaries < cmp.Or(*set.Spec.Replicas, set.Status.RestoreReplicas)
}

// HasBudgets reports whether a set has budgets at all.
func HasBudgets(set *v1alpha1.ReplicatedStatefulSet) bool {
	return set.Spec.PodDisruptionBudget == nil || !set.Spec.PodDisruptionBudget.Disabled
}

// UnreadParts returns why parts of a set were dropped when it was read, for example because they
// are too large.
func UnreadParts(set *v1alpha1.ReplicatedStatefulSet) unread.Parts {
	return unread.Parts{Spec: set.Spec.Problem, Status: set.Status.Problem}
}

// HasCommand reports whether the spec has a command of that name.
func HasCommand(set *v1alpha1.ReplicatedStatefulSet, name string) bool {
	_, ok := set.Spec.Pod.Commands[name]
	return ok
}

// Maintained returns the members of spec.maintenance by ordinal, including those without a pod.
func Maintained(set *v1alpha1.ReplicatedStatefulSet) (names []string) {
	if set.DeletionTimestamp != nil {
		return nil
	}
	for _, name := range set.Spec.Maintenance {
		if _, ok := OrdinalOf(set, name); ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	return slices.Compact(names)
}

// IsListed reports whether a member is in spec.maintenance of a set that is not being deleted.
func IsListed(set *v1alpha1.ReplicatedStatefulSet, member string) bool {
	return set.DeletionTimestamp == nil && slices.Contains(set.Spec.Maintenance, member)
}

// HasFollowers reports whether some of the wanted members are not primary and run as secondaries.
func HasFollowers(set *v1alpha1.ReplicatedStatefulSet, wanted, target int) bool {
	return target < wanted && HasCommand(set, v1alpha1.CommandSecondary)
}

// WasRestored reports whether an object was restored from a backup.
func WasRestored(object metav1.Object) bool { return backup.Of(object) != "" }

func usesEpoch(arg string) bool {
	return strings.Contains(arg, epochWord) || strings.Contains(arg, createdWord)
}

// UsesEpoch reports whether any command uses the epoch.
func UsesEpoch(set *v1alpha1.ReplicatedStatefulSet) bool {
	for _, command := range set.Spec.Pod.Commands {
		if slices.ContainsFunc(command.Command, usesEpoch) {
			return true
		}
	}
	return false
}
