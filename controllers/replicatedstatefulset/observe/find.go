package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// object is a pointer to an API object.
type object[T any] interface {
	*T
	client.Object
}

// Find reads an object. It returns nil if there is none.
func Find[T any, O object[T]](ctx context.Context, from client.Reader, key types.NamespacedName) (O, error) {
	found := O(new(T))
	err := from.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key.Name, err)
	}
	return found, nil
}

// findCached reads an object from the cache. If the cache has none, a live view reads it from the
// API server.
func findCached[T any, O object[T]](ctx context.Context, cache client.Reader, from engine.View, key types.NamespacedName) (O, error) {
	found, err := Find[T, O](ctx, cache, key)
	if err == nil && found == nil && from.Live {
		return Find[T, O](ctx, from, key)
	}
	return found, err
}

// metadataListOf returns an empty metadata list of the core kind.
func metadataListOf(kind string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return l
}
