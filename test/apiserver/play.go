package apiserver

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pace is the min time between two steps of a simulation. No test waits for it.
	pace = 10 * time.Millisecond
	// idle is the max time between two steps. They do not depend only on watched objects.
	idle = 100 * time.Millisecond
)

// Play runs a simulation of controllers and kubelets in a namespace until the spec ends. It calls step after
// each change of the objects in the lists, and after an error, which it logs unless the object has changed
// meanwhile. Without changes it calls step seldom, because several suites share a machine with their servers.
func (s Server) Play(namespace string, step func(context.Context) error, lists ...client.ObjectList) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	for _, list := range lists {
		changes, err := s.User.Watch(ctx, list, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(changes.Stop)
		go func() {
			for range changes.ResultChan() {
				select {
				case changed <- struct{}{}:
				default: // a step is due
				}
			}
		}()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for await(ctx, pace) {
			if err := step(ctx); err != nil {
				if !hasChanged(err) && ctx.Err() == nil {
					GinkgoLogr.Error(err, "a step of the simulation failed")
				}
				continue
			}
			select {
			case <-ctx.Done():
			case <-changed:
			case <-time.After(idle):
			}
		}
	}()
	DeferCleanup(func() { cancel(); <-done })
}

// await waits, and reports whether ctx has not ended.
func await(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// hasChanged reports whether an error is the result of a change by another client.
func hasChanged(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}
