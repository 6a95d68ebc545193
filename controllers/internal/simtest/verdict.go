package simtest

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Test is what ends with a story that went wrong; *testing.T is one.
type Test interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Breaks notes that a law was broken. The story goes on until Check.
func (c *Cluster) Breaks(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// Check ends the test if a law was broken.
func (c *Cluster) Check(t Test) {
	t.Helper()
	if len(c.broken) > 0 {
		c.Fatal(t, strings.Join(c.broken, "\n"))
	}
}

// Fatal ends the test with the end of the story that led there.
func (c *Cluster) Fatal(t Test, why string) {
	t.Helper()
	const most = 150
	t.Fatalf("%s\nthe last of the story:\n%s", why, strings.Join(c.Story[max(0, len(c.Story)-most):], "\n"))
}

// Failure is a way in which one write goes wrong: before it happens, or after,
// so that its answer is lost.
type Failure struct {
	Name          string
	Before, After error
}

// Failures that befall any write.
var (
	Fails      = Failure{Name: "fails", Before: apierrors.NewInternalError(errors.New("etcd"))}
	NoAnswer   = Failure{Name: "has no answer", After: apierrors.NewTimeoutError("too slow", 1)}
	DiesBefore = Failure{Name: "is the last before the operator dies", Before: ErrKilled}
	DiesAfter  = Failure{Name: "is done, and then the operator dies", After: ErrKilled}
)

// At lets the nth write go wrong so, and says it in the story. The result is for
// Interfere.
func (f Failure) At(c *Cluster, nth int) func(n int, a action.Action) (before, after error) {
	c.Say("# write %d %s", nth, f.Name)
	return func(n int, _ action.Action) (before, after error) {
		if n == nth {
			return f.Before, f.After
		}
		return nil, nil
	}
}
