// Package follow watches one object, and calls a function for each of its states.
package follow

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Everywhere is a runnable that a manager runs on each replica, not only on the leader.
type Everywhere func(context.Context) error

// Start runs the function.
func (run Everywhere) Start(ctx context.Context) error { return run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (Everywhere) NeedLeaderElection() bool { return false }

// Object calls do for each state of the object with that type and key. It creates its own cache for
// this object, because the cache of the manager may be restricted to other namespaces. Nothing waits
// for this cache to sync. If reading the object is forbidden, do is never called.
func Object[T client.Object](mgr manager.Manager, object T, key types.NamespacedName, do func(context.Context, T)) error {
	one := cache.ByObject{Namespaces: map[string]cache.Config{
		key.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name)},
	}}
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:   mgr.GetScheme(),
		Mapper:   mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{object: one},
	})
	if err != nil {
		return fmt.Errorf("create the cache of %s: %w", key, err)
	}
	return mgr.Add(Everywhere(func(ctx context.Context) error {
		handle := func(state any) {
			if object, ok := state.(T); ok {
				do(ctx, object)
			}
		}
		informer, err := objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", key, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    handle,
			UpdateFunc: func(_, changed any) { handle(changed) },
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", key, err)
		}
		return objects.Start(ctx)
	}))
}
