package spec

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// WithDefaults sets the defaults of the schema for objects that the API server did not default, and
// missing replicas.
func WithDefaults(set *v1alpha1.ExtendedStatefulSet) *v1alpha1.ExtendedStatefulSet {
	set = set.DeepCopy()
	spec := &set.Spec
	strategy := &spec.UpdateStrategy
	strategy.Canaries = ptr.To(ptr.Deref(strategy.Canaries, 1))
	strategy.CanaryWatchTime = ptr.To(ptr.Deref(strategy.CanaryWatchTime, metav1.Duration{Duration: DefaultCanaryWatch}))
	strategy.UpdateWatchTime = ptr.To(ptr.Deref(strategy.UpdateWatchTime, metav1.Duration{Duration: DefaultUpdateWatch}))
	spec.InjectReplicasEnv = ptr.To(ptr.Deref(spec.InjectReplicasEnv, true))
	orElse(&strategy.Handover, v1alpha1.HandoverAuto)
	orElse(&spec.ConfigTracking, v1alpha1.TrackByIndex)
	orElse(&spec.Approval, v1alpha1.ApprovalAutomatic)
	orElse(&spec.ZoneNodeLabel, corev1.LabelTopologyZone)
	for _, job := range []*v1alpha1.UpdateJob{strategy.PreUpdateJob, strategy.PostUpdateJob} {
		if job != nil {
			orElse(&job.OnFailure, v1alpha1.OnFailureAbort)
		}
	}
	if spec.Template.Spec.Replicas == nil {
		spec.Template.Spec.Replicas = ptr.To(SmallestLegal(spec.Scaling))
	}
	return set
}

// orElse sets a field that is empty.
func orElse[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// SmallestLegal returns the default number of replicas: 1 as in a StatefulSet, or the next higher
// number that the rules allow. If the rules allow no higher number, it returns the max.
func SmallestLegal(rules *v1alpha1.Scaling) int32 {
	if rules == nil {
		return 1
	}
	n := max(1, ptr.Deref(rules.Min, 0))
	if rules.OddOnly && n%2 == 0 {
		n++
	}
	return min(n, ptr.Deref(rules.Max, n))
}

// ReplicasOf returns the number of pods in each zone. Admission sets missing replicas; this default
// covers objects that bypassed admission. The result is limited to MaxReplicas, so that no loop runs
// longer; a set with more replicas is invalid and gets no changes.
func ReplicasOf(set *v1alpha1.ExtendedStatefulSet) int32 {
	return min(max(0, ptr.Deref(set.Spec.Template.Spec.Replicas, SmallestLegal(set.Spec.Scaling))), MaxReplicas)
}

// HandoverOf returns the handover of an upgrade that begins now.
func HandoverOf(set *v1alpha1.ExtendedStatefulSet) v1alpha1.Handover {
	switch h := set.Spec.UpdateStrategy.Handover; {
	case h == v1alpha1.HandoverCoexist || h == v1alpha1.HandoverPerOrdinal:
		return h
	case len(set.Spec.Template.Spec.VolumeClaimTemplates) > 0:
		return v1alpha1.HandoverPerOrdinal
	}
	return v1alpha1.HandoverCoexist
}

// MinAvailableOf returns minAvailable of a budget as a number.
func MinAvailableOf(budget *v1alpha1.DisruptionBudget, replicas int32) int32 {
	if least := budget.MinAvailable; least != nil {
		return partOf(*least, replicas)
	}
	return max(0, replicas-partOf(ptr.Deref(budget.MaxUnavailable, intstr.FromInt32(0)), replicas))
}

// partOf returns a number, or a percentage of whole, rounded up as in a PodDisruptionBudget. Admission
// denies values that cannot be parsed.
func partOf(v intstr.IntOrString, whole int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, int(whole), true)
	if err != nil {
		return 0
	}
	return int32(min(max(0, n), MaxReplicas))
}

// ActiveService returns the name of the Service that selects the serving pods.
func ActiveService(set *v1alpha1.ExtendedStatefulSet) string { return set.Name + "-active" }

// ZonesFixed is the error if a set with claims switches between zones and no zones.
const ZonesFixed = "claim names contain the zone, so pods would start with new claims; with volumeClaimTemplates, zones can only be set when the object is created"

// SwitchesZones reports whether a set switches between zones and no zones, compared with status was.
func SwitchesZones(set *v1alpha1.ExtendedStatefulSet, was *v1alpha1.ExtendedStatefulSetStatus) bool {
	return was.CurrentVersion != 0 && (len(was.Zones) > 0) != (len(set.Spec.Zones) > 0)
}

// NeedsApproval reports whether a new version waits for the approval of a user. Values that the schema
// does not allow count as Manual.
func NeedsApproval(spec *v1alpha1.ExtendedStatefulSetSpec) bool {
	return cmp.Or(spec.Approval, v1alpha1.ApprovalAutomatic) != v1alpha1.ApprovalAutomatic
}

// JobOfCanaries returns the Job that checks the canaries of the first zone, or nil.
func JobOfCanaries(s *v1alpha1.UpdateStrategy) *v1alpha1.UpdateJob {
	withCanaries := []v1alpha1.When{v1alpha1.WhenCanary, v1alpha1.WhenBoth}
	if job := s.PostUpdateJob; job != nil && slices.Contains(withCanaries, job.When) {
		return job
	}
	return nil
}

// JobOfAll returns the Job that runs when a version has all its pods, or nil.
func JobOfAll(s *v1alpha1.UpdateStrategy) *v1alpha1.UpdateJob {
	if job := s.PostUpdateJob; job != nil && job.When != v1alpha1.WhenCanary {
		return job
	}
	return nil
}

// HoldsBack reports whether the update strategy of a StatefulSet delays the restart of pods after a
// template change until a user acts.
func HoldsBack(s *appsv1.StatefulSetUpdateStrategy) bool {
	partitioned := s.RollingUpdate != nil && ptr.Deref(s.RollingUpdate.Partition, 0) > 0
	return partitioned || s.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// DeletesClaims reports whether a retention policy would delete claims.
func DeletesClaims(p *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy) bool {
	const deletes = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	return p != nil && (p.WhenDeleted == deletes || p.WhenScaled == deletes)
}
