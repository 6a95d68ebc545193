package simulate

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Live reads the API server for an operator, and may pause at each read.
type Live struct{ Operator *Operator }

// Get reads one object. A Namespace that the cluster does not have exists.
func (l Live) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	s := l.Operator.s
	if _, first := into.(*v1.StatefulSingleton); first {
		return l.begin(func() error { return s.Get(ctx, name, into, opts...) })
	}
	if !l.Operator.Pause() {
		return simulation.ErrKilled
	}
	err := s.Get(ctx, name, into, opts...)
	if _, isNamespace := into.(*corev1.Namespace); isNamespace && apierrors.IsNotFound(err) {
		into.SetName(name.Name)
		return nil
	}
	return err
}

// begin reads the object, which is the first read of a pass, and pauses. The two lists of
// pods are read after it and concurrently. Each of them shows the pods at any later moment.
func (l Live) begin(read func() error) error {
	o, s := l.Operator, l.Operator.s
	missing := read()
	o.ObjectReads, o.missing = o.ObjectReads+1, missing != nil
	then := &objects.Objects{All: maps.Clone(s.All)}
	if !o.Pause() {
		return simulation.ErrKilled
	}
	now := &objects.Objects{All: maps.Clone(s.All)}
	o.lists = [2]*objects.Objects{now, now}
	for i := range o.lists {
		if s.Stale != nil && s.Stale() {
			o.lists[i] = then
		}
	}
	return missing
}

// List pauses before each list, except for lists of pods.
func (l Live) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := l.Operator
	shown := &o.s.Objects
	switch into.(type) {
	case *corev1.PodList:
		shown = o.lists[0]
		if selector := (&client.ListOptions{}).ApplyOptions(opts).LabelSelector; selector != nil && strings.Contains(selector.String(), v1.LabelSingleton) {
			shown = o.lists[1]
		}
	case *v1.StatefulSingletonList:
		o.ObjectReads++ // for a deleted object
		if !o.Pause() {
			return simulation.ErrKilled
		}
	default:
		if !o.Pause() {
			return simulation.ErrKilled
		}
	}
	return shown.List(ctx, into, opts...)
}

// cached reads the content of the caches.
type cached struct{ o *Operator }

// Get reads one object.
func (c cached) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.o.shown.Get(ctx, name, into, opts...)
}

// List reads objects.
func (c cached) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return c.o.shown.List(ctx, into, opts...)
}
