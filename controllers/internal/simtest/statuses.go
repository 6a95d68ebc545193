package simtest

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// StatusWriter is a writer that keeps the object whose status was written last.
type StatusWriter[O client.Object] struct {
	// Err, if set, is the error of each write.
	Err error
	// Tries is the number of writes, including those that failed.
	Tries int
	// Last is the object of the last successful write, as it is stored.
	Last O
	// Prune, if set, removes fields from each written object, as an API server with an older CRD does.
	Prune func(O)
}

// Run executes the first action, which must be a write of a status.
func (s *StatusWriter[O]) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	if len(steps) == 0 {
		return nil
	}
	a := steps[0][0][0]
	s.Tries++
	answer := a.Object.(O)
	if s.Prune != nil {
		answer = answer.DeepCopyObject().(O)
		s.Prune(answer)
	}
	if s.Err == nil {
		s.Last = answer
	}
	return []action.Outcome{{Action: a, Answer: answer, Err: s.Err}}
}
