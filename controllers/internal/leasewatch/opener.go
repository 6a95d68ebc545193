package leasewatch

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Opener starts to watch kinds in a cache of their own, until end is called. It does not wait for the cache.
type Opener func(ctx context.Context, options cache.Options, handler toolscache.ResourceEventHandler, kinds ...client.Object) (end context.CancelFunc, err error)

// OpenerOf returns an Opener with the types and the client settings of a manager. All its watches end with root,
// which must end with the manager.
func OpenerOf(c cluster.Cluster, root context.Context) Opener {
	return func(ctx context.Context, options cache.Options, handler toolscache.ResourceEventHandler, kinds ...client.Object) (context.CancelFunc, error) {
		options.Scheme, options.Mapper = c.GetScheme(), c.GetRESTMapper()
		watched, err := cache.New(c.GetConfig(), options)
		if err != nil {
			return nil, fmt.Errorf("create a cache: %w", err)
		}
		for _, kind := range kinds {
			informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
			if err != nil {
				return nil, err
			}
			if _, err := informer.AddEventHandler(handler); err != nil {
				return nil, err
			}
		}
		until, end := context.WithCancel(root)
		go func() { _ = watched.Start(until) }() // it returns only when its context ends
		return end, nil
	}
}
