package configuration

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// unsyncedCache is a cache whose informers are not synced, so that reads use the API server.
type unsyncedCache struct{ informertest.FakeInformers }

func (*unsyncedCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return controllertest.NewFakeInformer(), nil
}

// secretsOfTest is a Secrets with fake watches.
type secretsOfTest struct {
	*Secrets
	t *testing.T
	// opened contains the namespaces of all watches in order. failed contains functions that report an
	// error of these watches.
	opened []string
	failed []func(error)
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newSecrets(t *testing.T) *secretsOfTest {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &secretsOfTest{t: t, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
	t.Cleanup(s.queue.ShutDown)
	s.Secrets = &Secrets{
		Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(),
		Open: func(namespace string, onError toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
			s.opened = append(s.opened, namespace)
			s.failed = append(s.failed, func(err error) { onError(ctx, nil, err) })
			return &unsyncedCache{}, nil
		},
		Users: func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
		},
	}
	if err := s.Start(ctx, s.queue); err != nil {
		t.Fatal(err)
	}
	return s
}

// get reads a Secret that does not exist.
func (s *secretsOfTest) get(namespace, name string) {
	s.t.Helper()
	if err := s.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, Metadata(KindSecret)); !apierrors.IsNotFound(err) {
		s.t.Fatalf("the read returned %v", err)
	}
}

func (s *secretsOfTest) watches(want ...string) {
	s.t.Helper()
	if len(s.opened) != len(want) {
		s.t.Fatalf("watches are %q, not %q", s.opened, want)
	}
	for i := range want {
		if s.opened[i] != want[i] {
			s.t.Fatalf("watches are %q, not %q", s.opened, want)
		}
	}
}

func forbidden() error {
	return apierrors.NewForbidden(corev1.Resource("secrets"), "", nil)
}

func TestE14SecretsAreWatchedWhereTheyAreUsed(t *testing.T) {
	s := newSecrets(t)
	s.watches()
	s.get("a", "x")
	s.get("a", "y")
	s.get("b", "x")
	s.watches("a", "b")
	empty := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	s.ReleaseUnused(context.Background(), empty, &corev1.PodList{}, "a")
	s.get("b", "x")
	s.watches("a", "b")
	s.get("a", "x")
	s.watches("a", "b", "a")
}

func TestE14ARefusedWatchIsTriedAgainAndCostsNoOtherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecrets(t)
		s.get("a", "x")
		s.get("b", "x")
		s.failed[0](forbidden())
		s.failed[0](forbidden()) // a stopping reflector may report the error again
		s.get("a", "y")
		s.get("b", "x")
		s.watches("a", "b")
		if s.queue.Len() != 0 {
			t.Error("objects are woken immediately")
		}
		synctest.Wait()
		timer(Retry)
		if got, _ := s.queue.Get(); got.NamespacedName != (types.NamespacedName{Namespace: "a", Name: "y"}) || s.queue.Len() != 0 {
			t.Errorf("%v is woken, and %d more", got, s.queue.Len())
		}
		s.get("a", "y")
		s.watches("a", "b", "a")
		s.failed[0](forbidden()) // from the previous watch
		s.get("a", "y")
		timer(Retry)
		if s.queue.Len() != 0 {
			t.Error("the new watch was stopped instead of the old one")
		}
	})
}

// timer advances the time, and waits until expired timers have run.
func timer(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
