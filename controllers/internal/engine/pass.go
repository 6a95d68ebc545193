package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/large"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

// View is where a world is read.
type View struct {
	client.Reader
	// Live is true of the API server, and false of the cache.
	Live bool
}

// Pass is how a controller looks at one object and does the next thing. It decides on
// the cache, which costs nothing, and before anything is done that an old world could
// make wrong, again on the live world. O is the type of the object, and D is a world
// with what was decided about it.
type Pass[O client.Object, D any] struct {
	// Cache reads what the watches brought; Live reads the API server.
	Cache, Live client.Reader
	// Tracker knows which writes the cache has not shown yet.
	Tracker *consistency.Tracker
	// AsCached is an empty object to read one that was written from the cache with.
	AsCached func(client.Object) client.Object
	// New is an empty object.
	New func() O
	// Unread reports whether the operator does not have a part of an object. Refuse is called
	// for such an object in the place of all else.
	Unread func(O) bool
	Refuse func(context.Context, O) report.Outcome
	// Decide reads the world of an object, and decides what to do. It fails only if the
	// API does.
	Decide func(context.Context, O, View) (D, error)
	// Recheck reports whether to decide again on the live world.
	Recheck func(D) bool
	// Size is how many pods a live world reads, and a template of them.
	Size func(D) (pods int, template any)
	// Act does what was decided, and reports.
	Act func(context.Context, D) report.Outcome
	// Deleted is called for a name that no object has.
	Deleted func(context.Context, types.NamespacedName) report.Outcome
}

// Run is one pass for the object of a name.
func (p Pass[O, D]) Run(ctx context.Context, key types.NamespacedName) report.Outcome {
	object := p.New()
	if err := p.Cache.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return p.Deleted(ctx, key)
	} else if err != nil {
		return report.Retry(fmt.Errorf("get the object: %w", err))
	}
	if p.Unread(object) {
		return p.Refuse(ctx, object)
	}
	behind, err := p.Tracker.Behind(ctx, key, p.Cache, p.AsCached)
	if err != nil {
		return report.Retry(fmt.Errorf("look for own writes in the cache: %w", err))
	}
	if behind { // the event that brings the write wakes the key
		return report.Wait(consistency.Patience).Later()
	}
	ctx, leave := large.Pass(ctx)
	defer leave()
	decision, exists, err := p.Consider(ctx, object)
	if err != nil {
		return report.Retry(err)
	}
	if !exists {
		return report.Done() // the event of that is on the way
	}
	return p.Act(ctx, decision)
}

// Consider decides on the cache, and where Recheck says so, again on the live world.
// exists is false if the object is gone, or another has its name.
func (p Pass[O, D]) Consider(ctx context.Context, object O) (decision D, exists bool, err error) {
	if decision, err = p.Decide(ctx, object, View{Reader: p.Cache}); err != nil || !p.Recheck(decision) {
		return decision, true, err
	}
	if pods, template := p.Size(decision); pods > 0 {
		if err := large.Read(ctx, pods, template); err != nil {
			return decision, true, err
		}
	}
	live := p.New()
	err = p.Live.Get(ctx, client.ObjectKeyFromObject(object), live)
	if client.IgnoreNotFound(err) != nil {
		return decision, true, fmt.Errorf("get the object from the API server: %w", err)
	}
	if live.GetUID() != object.GetUID() { // it is empty of one that is gone
		return decision, false, nil
	}
	if p.Unread(live) { // the event of that is on the way
		return decision, false, nil
	}
	decision, err = p.Decide(ctx, live, View{Reader: p.Live, Live: true})
	return decision, true, err
}
