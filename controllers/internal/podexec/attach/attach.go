// Package attach runs commands in pods as a part of a manager. Decisions about them do not depend on a manager, so
// package podexec imports none.
package attach

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// Board adds a Board to the manager. Its commands are run by the function run. The channel receives
// the owner of each command that ended, as the object that the function owner returns for the key.
func Board(mgr manager.Manager, run func(context.Context, podexec.Command) podexec.Result, owner func(types.NamespacedName) client.Object) (*podexec.Board, <-chan event.GenericEvent, error) {
	woken := make(chan event.GenericEvent, 1024)
	ends := make(chan struct{}) // closed when the manager stops: nothing receives from woken then
	board := &podexec.Board{Run: run, Woken: func(key types.NamespacedName) {
		select {
		case woken <- event.GenericEvent{Object: owner(key)}:
		case <-ends:
		}
	}}
	waker := manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		close(ends)
		return nil
	})
	for _, runnable := range []manager.Runnable{board, waker} {
		if err := mgr.Add(runnable); err != nil {
			return nil, nil, fmt.Errorf("add the command runner to the manager: %w", err)
		}
	}
	return board, woken, nil
}
