package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contestant is one way to bring pods and claims about.
type contestant struct {
	name string
	// prepare runs before the clock; what it returns runs after. The operator
	// runs only for its own turn.
	prepare func(context.Context, *site, string) (stop func(), err error)
	// create asks for the sets; the clock starts with it.
	create func(context.Context, *site, string, shape) error
	// change makes every member be replaced.
	change func(context.Context, *site, string) error
}

const (
	ours    = "StatefulCluster"
	builtIn = "StatefulSet"
	bare    = "bare pool"
	// workers is how many goroutines the bare pool has.
	workers = 32
)

var contestants = []contestant{
	{name: ours, prepare: withOperator, create: createClusters, change: changeCluster},
	{name: builtIn, prepare: withNothing, create: createStatefulSets, change: changeStatefulSet},
	{name: bare, prepare: withOwner, create: createBare},
}

func withOperator(ctx context.Context, s *site, _ string) (func(), error) {
	o, err := s.startOperator(ctx, "StatefulCluster")
	if err != nil {
		return nil, err
	}
	return o.stop, nil
}

func withNothing(context.Context, *site, string) (func(), error) { return func() {}, nil }

// ownerName is an object that owns the bare pods, as every controller's pods
// have an owner.
const ownerName = "owner"

func withOwner(ctx context.Context, s *site, namespace string) (func(), error) {
	_, err := s.admin.CoreV1().ConfigMaps(namespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ownerName}}, metav1.CreateOptions{})
	return func() {}, err
}

func createClusters(ctx context.Context, s *site, namespace string, want shape) error {
	return spread(ctx, want.sets, func(i int) error {
		return s.objects.Create(ctx, statefulCluster(namespace, i, want.members))
	})
}

func createStatefulSets(ctx context.Context, s *site, namespace string, want shape) error {
	return spread(ctx, want.sets, func(i int) error {
		_, err := s.admin.AppsV1().StatefulSets(namespace).Create(ctx, statefulSet(namespace, i, want.members), metav1.CreateOptions{})
		return err
	})
}

func createBare(ctx context.Context, s *site, namespace string, want shape) error {
	owner, err := s.bareOwner(ctx, namespace)
	if err != nil {
		return err
	}
	pods, claims := s.pool.CoreV1().Pods(namespace), s.pool.CoreV1().PersistentVolumeClaims(namespace)
	return spread(ctx, want.pods(), func(n int) error {
		i, m := n/want.members, n%want.members
		if m == 0 {
			if err := s.createBareRest(ctx, owner, namespace, i); err != nil {
				return err
			}
		}
		if _, err := pods.Create(ctx, barePod(owner, i, m), metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := claims.Create(ctx, bareClaim(owner, i, m), metav1.CreateOptions{})
		return err
	})
}

// createBareRest creates what a StatefulCluster has beside its members.
func (s *site) createBareRest(ctx context.Context, owner metav1.OwnerReference, namespace string, i int) error {
	if _, err := s.pool.AppsV1().ControllerRevisions(namespace).Create(ctx, bareRevision(owner, i), metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := s.pool.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, bareBudget(owner, i), metav1.CreateOptions{})
	return err
}

func (s *site) bareOwner(ctx context.Context, namespace string) (metav1.OwnerReference, error) {
	owner, err := s.admin.CoreV1().ConfigMaps(namespace).Get(ctx, ownerName, metav1.GetOptions{})
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}, nil
}

// newGeneration replaces the only container's variable, in both kinds alike.
var newGeneration = []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/env/0/value","value":"2"}]`)

func changeCluster(ctx context.Context, s *site, namespace string) error {
	set := statefulCluster(namespace, 0, 0)
	return s.objects.Patch(ctx, set, client.RawPatch(types.JSONPatchType, newGeneration))
}

func changeStatefulSet(ctx context.Context, s *site, namespace string) error {
	_, err := s.admin.AppsV1().StatefulSets(namespace).Patch(ctx, setName(0), types.JSONPatchType, newGeneration, metav1.PatchOptions{})
	return err
}

// spread calls do for 0 to n-1 from as many goroutines as the bare pool has,
// and stops at the first error.
func spread(ctx context.Context, n int, do func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	var running sync.WaitGroup
	for range min(workers, n) {
		running.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	running.Wait()
	return context.Cause(ctx)
}
