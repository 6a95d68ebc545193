package report

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Verdict is what an error of an action means for the pass.
type Verdict int

// The verdicts.
const (
	// Succeeded: there is no error.
	Succeeded Verdict = iota
	// Overtaken: the world is another than was read; the next pass reads it again.
	Overtaken
	// Ending: the namespace is being deleted. Nothing new can be made in it, and our own
	// deletion is on its way.
	Ending
	// Failed: the API server refuses it, or did not answer.
	Failed
)

// Judge says what an error of an action means.
func Judge(err error) Verdict {
	switch {
	case err == nil:
		return Succeeded
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), errors.Is(err, action.ErrNotBegun):
		return Overtaken
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Ending
	}
	return Failed
}

// Sooner is the shorter of two times to wait; 0 or less is never.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || (b > 0 && b < a) {
		return max(b, 0)
	}
	return a
}
