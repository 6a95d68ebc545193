// Package objects stores the objects of a simulated cluster, and implements client.Reader
// for them.
package objects

import (
	"context"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects are the objects at one point in time.
type Objects struct {
	// Indexes evaluate field selectors.
	Indexes map[string]func(client.Object) string
	// All contains the objects. They are never modified, only replaced.
	All map[Key]client.Object

	// cuts are the objects of the last Snapshot.
	cuts map[Key]cutObject
}

// cutObject is a stored object, and its form in a cache. The latter is nil if the object is not cached.
type cutObject struct{ of, is client.Object }

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
	old := &Objects{Indexes: v.Indexes, All: make(map[Key]client.Object, len(v.All))}
	cuts := make(map[Key]cutObject, len(v.All))
	for k, obj := range v.All {
		held := v.cuts[k]
		if held.of != obj {
			held = cutObject{obj, cut(Clone(obj))}
		}
		cuts[k] = held
		if held.is != nil {
			old.All[k] = held.is
		}
	}
	v.cuts = cuts
	return old
}

// Get reads one object.
func (v *Objects) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	have := v.All[Key{KindOf(into), name.Namespace, name.Name}]
	if have == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: KindOf(into)}, name.Name)
	}
	copyInto(into, Clone(have))
	return nil
}

// List reads the objects of a kind, sorted by name. As in a cache, with UnsafeDisableDeepCopy the items share maps,
// slices and pointers with the stored objects, and must not be modified.
func (v *Objects) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	var selected []client.Object
	kind := KindOf(into)
	for k, obj := range v.All {
		elsewhere := options.Namespace != "" && k.Namespace != options.Namespace
		if k.Kind == kind && !elsewhere && v.selects(options, obj) {
			selected = append(selected, obj)
		}
	}
	slices.SortFunc(selected, func(a, b client.Object) int {
		if byName := strings.Compare(a.GetName(), b.GetName()); byName != 0 {
			return byName
		}
		return strings.Compare(a.GetNamespace(), b.GetNamespace())
	})
	if options.Limit > 0 && len(selected) > int(options.Limit) {
		selected = selected[:options.Limit] // the rest is never requested
	}
	items, err := meta.GetItemsPtr(into)
	if err != nil {
		return err
	}
	isShared := ptr.Deref(options.UnsafeDisableDeepCopy, false)
	list := reflect.ValueOf(items).Elem()
	list.Set(reflect.MakeSlice(list.Type(), len(selected), len(selected)))
	for i, obj := range selected {
		if !isShared {
			obj = Clone(obj)
		}
		copyInto(list.Index(i).Addr().Interface().(client.Object), obj)
	}
	return nil
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

// copyInto sets an object to another one, with the same maps, slices and pointers.
func copyInto(into, have client.Object) {
	if m, metadata := into.(*metav1.PartialObjectMetadata); metadata {
		m.ObjectMeta = reflect.ValueOf(have).Elem().FieldByName("ObjectMeta").Interface().(metav1.ObjectMeta)
		return
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(have).Elem())
}

// Clone returns a deep copy.
func Clone[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }
