package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contestant is a way to create pods and claims: through objects of a kind, or directly by the bare
// pool if set is nil.
type contestant struct {
	name string
	set  func(namespace string, i, members int) client.Object
}

const (
	ours    = "StatefulCluster"
	builtIn = "StatefulSet"
	bare    = "bare pool"
	// ownerName is the object that owns the bare pods, because the pods of every controller have an
	// owner.
	ownerName = "owner"
	// workers is the number of goroutines of the bare pool.
	workers = 32
)

var contestants = []contestant{{ours, statefulCluster}, {builtIn, statefulSet}, {bare, nil}}

// prepare runs before the measurement, and the returned function after it. The operator runs only while
// it is measured.
func (c contestant) prepare(ctx context.Context, s *site, namespace string) (stop func()) {
	switch c.name {
	case ours:
		return s.startOperator(ctx, ours).stop
	case bare:
		check(s.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ownerName}}))
	}
	return func() {}
}

// create creates the sets. The measurement starts with the call.
func (c contestant) create(ctx context.Context, s *site, namespace string, want shape) error {
	if c.set == nil {
		return s.createBare(ctx, namespace, want)
	}
	return spread(ctx, want.sets, func(i int) error { return s.client.Create(ctx, c.set(namespace, i, want.members)) })
}

func (s *site) createBare(ctx context.Context, namespace string, want shape) error {
	var object corev1.ConfigMap
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ownerName}, &object); err != nil {
		return err
	}
	owner := *metav1.NewControllerRef(&object, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	pods, claims := s.pool.CoreV1().Pods(namespace), s.pool.CoreV1().PersistentVolumeClaims(namespace)
	return spread(ctx, want.pods(), func(n int) error {
		i, m := n/want.members, n%want.members
		if m == 0 { // a StatefulCluster has these in addition to its members
			_, revised := s.pool.AppsV1().ControllerRevisions(namespace).Create(ctx, bareRevision(owner, i), metav1.CreateOptions{})
			_, guarded := s.pool.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, bareBudget(owner, i), metav1.CreateOptions{})
			if err := errors.Join(revised, guarded); err != nil {
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

// change triggers the replacement of all members of a namespace's first set. It changes the variable of
// the only container, for both kinds.
func (c contestant) change(ctx context.Context, s *site, namespace string) {
	generation := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/env/0/value","value":"2"}]`)
	check(s.client.Patch(ctx, c.set(namespace, 0, 0), client.RawPatch(types.JSONPatchType, generation)))
}
