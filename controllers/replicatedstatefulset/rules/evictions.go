package rules

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// primariesToDrain returns the primaries that must hand their role over because they should leave
// their Node.
func primariesToDrain(f *facts.Facts) []*facts.Member {
	if f.Deleting() || !spec.HandsOver(f.Set) || f.WantedPrimaries() == 0 {
		return nil
	}
	return f.Among(func(m *facts.Member) bool {
		return m.Shown == record.Primary && m.ShouldLeaveNode && !m.Terminating() && !m.ScaledDown
	})
}

// PrimaryToDrain returns the first of primariesToDrain. It returns nil if there is none.
func PrimaryToDrain(f *facts.Facts) *facts.Member {
	if all := primariesToDrain(f); len(all) > 0 {
		return all[0]
	}
	return nil
}

// whyToLeave states why a member should leave its Node.
func whyToLeave(m *facts.Member) string {
	if m.Node.Cordoned {
		return fmt.Sprintf("Node %s is cordoned", m.Pod.Spec.NodeName)
	}
	return "its eviction was requested"
}

// evictionDeadline returns when spec.evictionTimeout expires. It returns zero if there is no
// timeout, or no eviction waits.
func evictionDeadline(f *facts.Facts) time.Time {
	timeout := spec.DurationOr(f.Set.Spec.EvictionTimeout, 0, 0, spec.MaxWindow)
	since := meta.FindStatusCondition(f.Set.Status.Conditions, v1alpha1.ConditionDraining)
	if timeout == 0 || since == nil || since.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return since.LastTransitionTime.Add(timeout)
}

// EvictionTimeIsOver reports whether a primary may be evicted without a successor.
func EvictionTimeIsOver(f *facts.Facts) bool {
	deadline := evictionDeadline(f)
	return !deadline.IsZero() && !f.Now.Before(deadline)
}
