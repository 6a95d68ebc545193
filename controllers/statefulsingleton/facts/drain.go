package facts

import (
	"fmt"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// ReplacesFirst reports whether a successor has to wait on another Node before the holder
// may be evicted.
func (w *World) ReplacesFirst() bool {
	if !w.Serves() || w.Deleting() {
		return false
	}
	return w.Object.Spec.OnEviction == v1.EvictionReplacesFirst
}

// OwnsBudget reports whether the existing PodDisruptionBudget belongs to this object.
func (w *World) OwnsBudget() bool {
	return owned.By(w.Budget, w.Object, v1.GroupVersion.WithKind("StatefulSingleton"))
}

// findLeaving returns the active pod if it has to leave its cordoned Node; nil if it does
// not. A pod that is not Ready does not have to leave: its budget does not protect it, so a
// drain may evict it.
func (f *Facts) findLeaving() *Member {
	m := f.Active
	switch {
	case !f.ReplacesFirst(),
		m == nil,
		len(f.Blockers) > 1,
		!m.Node.Cordoned,
		!m.Holder,
		!m.HasTurn(),
		!m.Lives(),
		m.Family.Unwanted,
		f.WhyNoSuccessor(m) != "":
		return nil
	}
	if m.Detached() || podstate.Ready(m.Pod) {
		return m
	}
	return nil
}

// WhyNoSuccessor returns why no successor can be created on another Node while this pod
// runs, and the remedy; "" if one can.
func (f *Facts) WhyNoSuccessor(m *Member) string {
	owner := &m.Family
	tolerated := nodestate.ToleratedCordon(m.Pod.Spec.Tolerations)
	switch {
	case !f.MadeUnder(m):
		return "it was not created under this StatefulSingleton; delete it once, and its replacement is"
	case owner.Deployment == "":
		return "it is not owned by a Deployment, and its owner recreates it only after it is gone"
	case !owner.Rolls:
		return fmt.Sprintf("Deployment %s has strategy Recreate, which deletes the old pod before it creates the next one; with RollingUpdate, the next pod can wait at its gate", owner.Deployment)
	case !owner.Surges:
		return fmt.Sprintf("maxSurge of Deployment %s is 0; with 1, the next pod can wait at its gate", owner.Deployment)
	case owner.Pinned:
		return fmt.Sprintf("the template of Deployment %s sets nodeName, and the next pod would start on the same Node; use nodeSelector or affinity", owner.Deployment)
	case tolerated != "":
		return fmt.Sprintf("the template of Deployment %s tolerates taint %s, and the next pod could start on a cordoned Node", owner.Deployment, tolerated)
	}
	return ""
}

// takesOverFrom reports whether a waiting pod can take over from a pod that has to leave its
// Node: they have the same owner, and the waiting pod is not on a cordoned Node, not of an
// older revision, and was not in a crash loop.
func (m *Member) takesOverFrom(old *Member) bool {
	switch {
	case m.Family.Owner != old.Family.Owner,
		m.Tried,
		m.Node.Cordoned:
		return false
	}
	return old.Family.Outdated || !m.Family.Outdated
}
