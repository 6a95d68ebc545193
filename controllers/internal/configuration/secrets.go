package configuration

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Secrets reads the metadata of Secrets. It watches the Secrets of a namespace from the first
// read there until ReleaseUnused, so that the right to read Secrets can be given for each namespace.
// Where the API server refuses to list them, it reads each by its name, and again
// after Retry.
//
// It is a source of the controller whose objects use the Secrets.
type Secrets struct {
	// Open returns a cache of the metadata of the Secrets of one namespace, not started. The
	// cache reports errors of its watch to onError.
	Open func(namespace string, onError toolscache.WatchErrorHandlerWithContext) (cache.Cache, error)
	// Live reads from the API server.
	Live client.Reader
	// Users returns the objects to reconcile after a Secret changed.
	Users handler.MapFunc

	mu      sync.Mutex
	running context.Context //nolint:containedctx // that of the controller, which ends the watches
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	watched map[string]*watchedNamespace
}

// watchedNamespace is the watch of the Secrets of one namespace.
type watchedNamespace struct {
	cache    cache.Cache
	informer cache.Informer
	stop     context.CancelFunc
	// refused has the names that were asked for since the API server refused to list the
	// Secrets; nil while it did not.
	refused map[string]bool
}

// Start keeps the queue of the controller, for changes that are seen later.
func (s *Secrets) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.queue, s.watched = ctx, queue, map[string]*watchedNamespace{}
	return nil
}

// ReleaseUnused ends the watch of the Secrets of a namespace where a cache has no object of a
// kind. objects is an empty list of that kind.
func (s *Secrets) ReleaseUnused(ctx context.Context, cached client.Reader, objects client.ObjectList, namespace string) {
	if err := cached.List(ctx, objects, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil || meta.LenList(objects) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watched[namespace]; w != nil {
		w.stop()
		delete(s.watched, namespace)
	}
}

// Get reads the metadata of one Secret: from the cache if that is synced, else from the API
// server.
func (s *Secrets) Get(ctx context.Context, key types.NamespacedName, secret client.Object, options ...client.GetOption) error {
	if synced, err := s.of(key.Namespace, key.Name); err != nil {
		return err
	} else if synced != nil {
		return synced.Get(ctx, key, secret, options...)
	}
	return s.Live.Get(ctx, key, secret, options...)
}

// List lists the metadata of the Secrets of one namespace. Where the cache is not synced, it
// lists all Secrets of the namespace, whatever field they were selected by.
func (s *Secrets) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var wanted client.ListOptions
	wanted.ApplyOptions(options)
	if synced, err := s.of(wanted.Namespace, ""); err != nil {
		return err
	} else if synced != nil {
		return synced.List(ctx, list, options...)
	}
	return s.Live.List(ctx, list, client.InNamespace(wanted.Namespace))
}

// of returns the cache of a namespace, and nil if that is not synced. It begins to watch where
// nothing was asked for yet.
func (s *Secrets) of(namespace, name string) (client.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, nil
	}
	w := s.watched[namespace]
	if w == nil {
		var err error
		if w, err = s.watch(namespace); err != nil {
			return nil, err
		}
		s.watched[namespace] = w
	}
	switch {
	case w.refused != nil:
		if name != "" {
			w.refused[name] = true
		}
		return nil, nil
	case !w.informer.HasSynced():
		return nil, nil
	}
	return w.cache, nil
}

// watch begins to watch the Secrets of a namespace.
func (s *Secrets) watch(namespace string) (*watchedNamespace, error) {
	w := &watchedNamespace{}
	var err error
	if w.cache, err = s.Open(namespace, func(ctx context.Context, r *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			s.refuse(namespace, w)
			return
		}
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(s.running)
	if w.informer, err = w.cache.GetInformer(ctx, Metadata(KindSecret), cache.BlockUntilSynced(false)); err == nil {
		_, err = w.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.changed(ctx, o) },
			UpdateFunc: func(_, o any) { s.changed(ctx, o) },
			DeleteFunc: func(o any) { s.changed(ctx, o) },
		})
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	go func() {
		if err := w.cache.Start(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "watch Secrets", "namespace", namespace)
		}
	}()
	return w, nil
}

// refuse ends a watch that the API server refused, and wakes the users of the Secrets that were
// asked for, after a while, to read them again and to try the watch again.
func (s *Secrets) refuse(namespace string, w *watchedNamespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.refused != nil {
		return
	}
	w.stop()
	w.refused = map[string]bool{}
	ctrl.LoggerFrom(s.running).Info("The API server refuses to list Secrets, so those that objects use are read one by one", "namespace", namespace)
	time.AfterFunc(Retry, func() { s.retry(namespace, w) })
}

func (s *Secrets) retry(namespace string, w *watchedNamespace) {
	s.mu.Lock()
	ctx, names := s.running, w.refused
	if s.watched[namespace] == w {
		delete(s.watched, namespace)
	}
	s.mu.Unlock()
	for name := range names {
		secret := Metadata(KindSecret)
		secret.Namespace, secret.Name = namespace, name
		s.changed(ctx, secret)
	}
}

// changed wakes the users of a Secret.
func (s *Secrets) changed(ctx context.Context, o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if secret, ok := o.(*metav1.PartialObjectMetadata); ok && ctx.Err() == nil {
		for _, request := range s.Users(ctx, secret) {
			s.queue.Add(request)
		}
	}
}

// Beside returns a reader of a cache that reads the metadata of Secrets here.
func (s *Secrets) Beside(cached client.Reader) client.Reader { return besideSecrets{cached, s} }

type besideSecrets struct {
	client.Reader
	secrets *Secrets
}

func (b besideSecrets) Get(ctx context.Context, key types.NamespacedName, o client.Object, options ...client.GetOption) error {
	if o.GetObjectKind().GroupVersionKind() == corev1.SchemeGroupVersion.WithKind(KindSecret) {
		return b.secrets.Get(ctx, key, o, options...)
	}
	return b.Reader.Get(ctx, key, o, options...)
}

func (b besideSecrets) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if list.GetObjectKind().GroupVersionKind() == corev1.SchemeGroupVersion.WithKind(KindSecret+"List") {
		return b.secrets.List(ctx, list, options...)
	}
	return b.Reader.List(ctx, list, options...)
}

// OpenSecrets returns how Secrets are watched with the client of a manager. transform is that of
// the cache, and each of the indexes adds one to it.
func OpenSecrets(mgr ctrl.Manager, transform toolscache.TransformFunc, indexes ...func(client.FieldIndexer) error) func(string, toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
	return func(namespace string, onError toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		opened, err := cache.New(mgr.GetConfig(), cache.Options{
			Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			DefaultTransform:  transform, DefaultWatchErrorHandler: onError,
		})
		for _, index := range indexes {
			if err == nil {
				err = index(opened)
			}
		}
		return opened, err
	}
}
