package report

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Verdict classifies the error of an action.
type Verdict int

// The verdicts.
const (
	// Succeeded means that there is no error.
	Succeeded Verdict = iota
	// Overtaken means that an object changed or was deleted since it was read, or that a command was not
	// started. It is no error: the next pass reads the state again.
	Overtaken
	// Ending means that the namespace is terminating. No objects can be created in it, and our own
	// object will be deleted too.
	Ending
	// Failed means that the API server rejected the request or did not respond.
	Failed
)

// Judge returns the verdict on the error of an action.
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

// Sooner returns the shorter of two delays. A delay of 0 or less means never.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || (b > 0 && b < a) {
		return max(b, 0)
	}
	return a
}
