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

// View is a source of objects: the cache or the API server.
type View struct {
	client.Reader
	// Live is true for the API server and false for the cache.
	Live bool
}

// Pass reconciles one object. It first decides on the cache, which is cheap. If stale state could make
// an action wrong, it decides again on live objects before it acts. O is the type of the object. D is
// the decision, with the state that was read for it.
type Pass[O client.Object, D any] struct {
	// Cache reads from the informer caches; Live reads from the API server.
	Cache, Live client.Reader
	// Tracker tracks the writes that the cache does not contain yet.
	Tracker *consistency.Tracker
	// AsCached returns an empty object of the cached type of a written object.
	AsCached func(client.Object) client.Object
	// New returns an empty object.
	New func() O
	// Unread reports whether a part of the object could not be read. Refuse is then called instead of
	// Decide and Act.
	Unread func(O) bool
	Refuse func(context.Context, O) report.Outcome
	// Decide reads the objects that belong to O, and decides. It returns only errors of the API.
	Decide func(context.Context, O, View) (D, error)
	// Recheck reports whether to decide again on live objects.
	Recheck func(D) bool
	// Size returns the number of pods that a live read returns, and their template.
	Size func(D) (pods int, template any)
	// Act carries out the decision, and returns its outcome.
	Act func(context.Context, D) report.Outcome
	// Deleted is called if no object of the name exists.
	Deleted func(context.Context, types.NamespacedName) report.Outcome
}

// Run reconciles the object with the given key.
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
		return report.Retry(fmt.Errorf("check whether the cache shows own writes: %w", err))
	}
	if behind { // the event of the missing write requeues the key
		return report.Wait(consistency.Patience).Later()
	}
	ctx, release := large.Pass(ctx) // a pass that reads much waits for its turn
	defer release()
	decision, exists, err := p.Consider(ctx, object)
	if err != nil {
		return report.Retry(err)
	}
	if !exists {
		return report.Done() // its event is on the way
	}
	return p.Act(ctx, decision)
}

// Consider decides on the cache, and again on live objects if Recheck requires it. exists is false if
// the object was deleted, or replaced by another one of the same name.
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
	if live.GetUID() != object.GetUID() { // live is empty if the object was deleted
		return decision, false, nil
	}
	if p.Unread(live) { // its event is on the way, and causes a pass that calls Refuse
		return decision, false, nil
	}
	decision, err = p.Decide(ctx, live, View{Reader: p.Live, Live: true})
	return decision, true, err
}
