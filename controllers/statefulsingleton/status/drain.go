package status

import (
	"fmt"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// notReplacedFirst returns a reason and message if a drain evicts the active pod before it
// has a successor, contrary to spec.onEviction.
func notReplacedFirst(f *facts.Facts) engine.Notice {
	m := f.Active
	switch {
	case !f.ReplacesFirst(),
		m == nil,
		!m.Lives(),
		!m.HasTurn():
		return engine.Notice{}
	}
	why := f.WhyNoSuccessor(m)
	switch {
	case f.Budget == nil && why != "":
		return engine.Notice{Reason: v1.ReasonNotReplacedFirst, Message: fmt.Sprintf("spec.onEviction is ReplaceFirst, but a drain evicts pod %s as with Replace: %s", m.Name(), why)}
	case f.Budget != nil && !f.OwnsBudget():
		return engine.Notice{Reason: v1.ReasonNotReplacedFirst, Message: fmt.Sprintf("spec.onEviction is ReplaceFirst, but evictions of pod %s are not refused: PodDisruptionBudget %s was not created by the operator; delete it, and the operator creates its own: kubectl -n %s delete pdb %s",
			m.Name(), f.Budget.Name, f.Budget.Namespace, f.Budget.Name)}
	}
	return engine.Notice{}
}

// runsOn returns the text that a pod keeps running, and which Node it has to leave.
func runsOn(f *facts.Facts, old *facts.Member) string {
	if old != f.Leaving {
		return fmt.Sprintf("pod %s keeps running", old.Name())
	}
	return fmt.Sprintf("pod %s has to leave cordoned Node %s and keeps running", old.Name(), old.Pod.Spec.NodeName)
}

// toStay returns the command that keeps the pod on its Node; "" if it does not have to
// leave.
func toStay(f *facts.Facts, old *facts.Member) string {
	if old != f.Leaving {
		return ""
	}
	return "; to keep it there: kubectl uncordon " + old.Pod.Spec.NodeName
}
