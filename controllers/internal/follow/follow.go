// Package follow tells of each state of one object, by a watch of that object alone.
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

// Everywhere is what a manager runs on each replica, and not only on the one that holds the
// lease.
type Everywhere func(context.Context) error

// Start runs it.
func (run Everywhere) Start(ctx context.Context) error { return run(ctx) }

// NeedLeaderElection is what the manager asks.
func (Everywhere) NeedLeaderElection() bool { return false }

// Object calls do with each state of the object of that kind and name. It has a cache of its
// own, which holds that object alone: the manager's may be bound to other namespaces. Nothing
// waits for it, and where the object may not be read nothing is told.
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
		return fmt.Errorf("making the cache of %s: %w", key, err)
	}
	return mgr.Add(Everywhere(func(ctx context.Context) error {
		see := func(seen any) {
			if object, ok := seen.(T); ok {
				do(ctx, object)
			}
		}
		informer, err := objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %s: %w", key, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    see,
			UpdateFunc: func(_, changed any) { see(changed) },
		})
		if err != nil {
			return fmt.Errorf("watching %s: %w", key, err)
		}
		return objects.Start(ctx)
	}))
}
