package simulation

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Failure is a failure of one write. With Before, the write does not happen. With After, it happens,
// but its response is lost.
type Failure struct {
	Name          string
	Before, After error
}

// Failures that can affect any write.
var (
	Fails      = Failure{Name: "fails", Before: apierrors.NewInternalError(errors.New("etcd"))}
	NoAnswer   = Failure{Name: "has no response", After: apierrors.NewTimeoutError("too slow", 1)}
	DiesBefore = Failure{Name: "is the last write before the operator crashes", Before: ErrKilled}
	DiesAfter  = Failure{Name: "is done, and then the operator crashes", After: ErrKilled}
)

// At returns a function for Interfere that makes the nth write fail. It records the failure in the
// story.
func (f Failure) At(c *Cluster, nth int) func(n int, a action.Action) (before, after error) {
	c.Say("# write %d %s", nth, f.Name)
	return func(n int, _ action.Action) (before, after error) {
		if n == nth {
			return f.Before, f.After
		}
		return nil, nil
	}
}
