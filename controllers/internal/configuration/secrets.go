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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Secrets reads the metadata of Secrets. It watches the Secrets of a namespace from the first read
// there until ReleaseUnused, so that permission to read Secrets can be granted per namespace. If the
// API server forbids listing them, it reads each Secret by name, and again after Retry.
//
// Secrets is a source of the controller whose objects use the Secrets.
type Secrets struct {
	// Open returns a cache of the metadata of the Secrets of one namespace, not started. The cache
	// reports watch errors to onError.
	Open func(namespace string, onError toolscache.WatchErrorHandlerWithContext) (cache.Cache, error)
	// Live reads from the API server.
	Live client.Reader
	// Users returns the objects to reconcile after a change of a Secret.
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
	// refused contains the names that were read since the API server forbade listing the Secrets; nil
	// while it does not forbid it.
	refused map[string]bool
}

// Start stores the queue of the controller for later changes.
func (s *Secrets) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.queue, s.watched = ctx, queue, map[string]*watchedNamespace{}
	return nil
}

// ReleaseUnused ends the watch of the Secrets of a namespace if the cache contains no object of a kind
// there. objects is an empty list of that kind.
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

// Get reads the metadata of one Secret. It reads from the cache if that is synced, else from the API
// server.
func (s *Secrets) Get(ctx context.Context, key types.NamespacedName, secret client.Object, options ...client.GetOption) error {
	if synced, err := s.of(key.Namespace, key.Name); err != nil {
		return err
	} else if synced != nil {
		return synced.Get(ctx, key, secret, options...)
	}
	return s.Live.Get(ctx, key, secret, options...)
}

// List lists the metadata of the Secrets of one namespace. If the cache is not synced, it lists all
// Secrets of the namespace and ignores field selectors.
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

// of returns the cache of a namespace, or nil if it is not synced. It starts the watch on the first
// call.
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

// watch starts a watch of the Secrets of a namespace.
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
			log.FromContext(ctx).Error(err, "watch Secrets", "namespace", namespace)
		}
	}()
	return w, nil
}

// refuse ends a forbidden watch. After Retry, it requeues the users of the Secrets that were read, so
// that these are read again and the watch is retried.
func (s *Secrets) refuse(namespace string, w *watchedNamespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.refused != nil {
		return
	}
	w.stop()
	w.refused = map[string]bool{}
	log.FromContext(s.running).Info("The API server refuses to list Secrets, so referenced Secrets are read one by one", "namespace", namespace)
	time.AfterFunc(Retry, func() { s.retry(namespace, w) })
}

// retry drops a forbidden watch, so that the next read starts another one, and requeues the users of the
// Secrets that were read meanwhile.
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

// changed requeues the users of a Secret.
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

// Beside returns a reader that reads the metadata of Secrets here, and all other objects from the given
// cache.
func (s *Secrets) Beside(cached client.Reader) client.Reader { return besideSecrets{cached, s} }

// besideSecrets is the reader that Beside returns.
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

// OpenSecrets returns a function for Secrets.Open that uses the client of a manager. transform is the
// transform of the cache, and each of the indexes adds an index to it.
func OpenSecrets(c cluster.Cluster, transform toolscache.TransformFunc, indexes ...func(client.FieldIndexer) error) func(string, toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
	return func(namespace string, onError toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		opened, err := cache.New(c.GetConfig(), cache.Options{
			Scheme: c.GetScheme(), Mapper: c.GetRESTMapper(), HTTPClient: c.GetHTTPClient(),
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
