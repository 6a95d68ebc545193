// Package objects stores the objects of a simulated cluster, and implements client.Reader
// for them.
package objects

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects are the objects at one point in time.
type Objects struct {
	// Indexes evaluate field selectors.
	Indexes map[string]func(client.Object) string
	// All contains the objects. They are never modified, only replaced.
	All map[Key]client.Object

	cuts map[client.Object]client.Object
}

// Key identifies an object.
type Key struct{ Kind, Namespace, Name string }

// KeyOf returns the key of an object.
func KeyOf(obj client.Object) Key { return Key{KindOf(obj), obj.GetNamespace(), obj.GetName()} }

// KindOf returns the kind of an object, or of the items of a list.
func KindOf(obj runtime.Object) string {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return strings.TrimSuffix(obj.GetObjectKind().GroupVersionKind().Kind, "List")
	}
	return strings.TrimSuffix(reflect.TypeOf(obj).Elem().Name(), "List")
}

// Snapshot returns the current objects as a stale reader would see them from now on. cut is the
// transform of its cache; it returns nil for an object that is not cached.
func (v *Objects) Snapshot(cut func(client.Object) client.Object) *Objects {
	old := &Objects{Indexes: v.Indexes, All: maps.Clone(v.All)}
	for k, obj := range old.All {
		held, known := v.cuts[obj]
		if !known {
			if v.cuts == nil {
				v.cuts = map[client.Object]client.Object{}
			}
			held = cut(Clone(obj))
			v.cuts[obj] = held
		}
		if old.All[k] = held; held == nil {
			delete(old.All, k)
		}
	}
	return old
}

// Get reads one object.
func (v *Objects) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	have := v.All[Key{KindOf(into), name.Namespace, name.Name}]
	if have == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: KindOf(into)}, name.Name)
	}
	copyInto(into, have)
	return nil
}

// List reads the objects of a kind, sorted by name.
func (v *Objects) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	var selected []Key
	kind := KindOf(into)
	for k, obj := range v.All {
		elsewhere := options.Namespace != "" && k.Namespace != options.Namespace
		if k.Kind == kind && !elsewhere && v.selects(options, obj) {
			selected = append(selected, k)
		}
	}
	slices.SortFunc(selected, func(a, b Key) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
	found := make([]runtime.Object, 0, len(selected))
	for _, k := range selected {
		obj := v.All[k]
		var item client.Object = &metav1.PartialObjectMetadata{}
		if _, metadata := into.(*metav1.PartialObjectMetadataList); !metadata {
			item = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
		}
		copyInto(item, obj)
		found = append(found, item)
	}
	if options.Limit > 0 && len(found) > int(options.Limit) {
		found = found[:options.Limit] // the rest is never requested
	}
	return meta.SetList(into, found)
}

func (v *Objects) selects(o *client.ListOptions, obj client.Object) bool {
	if o.FieldSelector != nil {
		for _, r := range o.FieldSelector.Requirements() {
			if index := v.Indexes[r.Field]; index == nil || index(obj) != r.Value {
				return false
			}
		}
	}
	return o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(obj.GetLabels()))
}

func copyInto(into, have client.Object) {
	have = Clone(have)
	if m, metadata := into.(*metav1.PartialObjectMetadata); metadata {
		m.ObjectMeta = reflect.ValueOf(have).Elem().FieldByName("ObjectMeta").Interface().(metav1.ObjectMeta)
		return
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(have).Elem())
}

// Clone returns a deep copy.
func Clone[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }
