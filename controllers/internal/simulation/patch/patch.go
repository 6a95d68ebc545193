// Package patch simulates how an API server applies a patch.
package patch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Apply returns the object have after a patch, or have itself if a patch of the status changes nothing. As in an API
// server, each verb can change only its part of an object; changes of other parts are ignored.
func Apply(a action.Action, have client.Object) (client.Object, error) {
	if a.Verb == action.PatchStatus {
		return withStatus(have, a.Object)
	}
	next, err := merge(a, have)
	if err != nil {
		return nil, err
	}
	if a.Verb == action.SetCondition {
		return withStatus(have, next)
	}
	if have.GetDeletionTimestamp() != nil {
		if added := newFinalizers(have, next); len(added) > 0 {
			return nil, invalid(have, field.Forbidden(field.NewPath("metadata", "finalizers"),
				fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %q", added)))
		}
	}
	if pod, isPod := next.(*corev1.Pod); isPod {
		return next, patchPod(a, have.(*corev1.Pod), pod)
	}
	if spec(next) != nil && !apiequality.Semantic.DeepEqual(spec(next), spec(have)) {
		next.SetGeneration(have.GetGeneration() + 1)
	}
	return withStatus(next, have)
}

// spec returns the spec of an object; nil if it has none.
func spec(obj client.Object) any {
	if field := reflect.ValueOf(obj).Elem().FieldByName("Spec"); field.IsValid() {
		return field.Interface()
	}
	return nil
}

// merge applies a strategic merge patch, or a JSON merge patch if the action is bound to a version.
func merge(a action.Action, have client.Object) (client.Object, error) {
	live, err := json.Marshal(have)
	if err != nil {
		return nil, err
	}
	var merged []byte
	if a.Unchanged {
		difference, err := client.MergeFrom(a.From).Data(a.Object)
		if err != nil {
			return nil, err
		}
		if merged, err = jsonpatch.MergePatch(live, difference); err != nil {
			return nil, err
		}
	} else {
		difference, err := client.StrategicMergeFrom(a.From).Data(a.Object)
		if err != nil {
			return nil, err
		}
		if merged, err = strategicpatch.StrategicMergePatch(live, difference, have); err != nil {
			return nil, err
		}
	}
	next := reflect.New(reflect.TypeOf(have).Elem()).Interface().(client.Object)
	return next, json.Unmarshal(merged, next)
}

// withStatus returns a copy of obj with the status of another object, as it is after it was sent and stored. It returns
// obj itself if it has this status.
func withStatus(obj, of client.Object) (client.Object, error) {
	was, from := statusField(obj), statusField(of)
	if !was.IsValid() || !from.IsValid() {
		return obj, nil
	}
	sent, stored := reflect.New(from.Type()).Elem(), reflect.New(from.Type()).Elem()
	changed := differing(was, from)
	for _, i := range changed {
		sent.Field(i).Set(from.Field(i))
	}
	text, err := json.Marshal(sent.Interface())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, stored.Addr().Interface()); err != nil {
		return nil, err
	}
	changed = slices.DeleteFunc(changed, func(i int) bool { return isSame(was.Field(i), stored.Field(i)) })
	if len(changed) == 0 {
		return obj, nil
	}
	next := objects.Clone(obj)
	into := statusField(next)
	for _, i := range changed {
		into.Field(i).Set(stored.Field(i))
	}
	return next, nil
}

// differing returns the indexes of the fields that differ.
func differing(a, b reflect.Value) (fields []int) {
	for i := range a.NumField() {
		if !isSame(a.Field(i), b.Field(i)) {
			fields = append(fields, i)
		}
	}
	return fields
}

// isSame reports whether two values are equal for an API server. Most are equal in all respects, which is faster to
// find out.
func isSame(a, b reflect.Value) bool {
	return reflect.DeepEqual(a.Interface(), b.Interface()) || apiequality.Semantic.DeepEqual(a.Interface(), b.Interface())
}

// statusField returns field Status of an object.
func statusField(obj client.Object) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName("Status")
}

// patchPod returns an error if the patch changes immutable fields of a pod.
func patchPod(a action.Action, was, pod *corev1.Pod) error {
	pod.Status = was.Status
	allowed := was.Spec.DeepCopy()
	for i := range allowed.Containers {
		if a.Verb == action.Resize {
			allowed.Containers[i].Resources = pod.Spec.Containers[i].Resources
		} else {
			allowed.Containers[i].Image = pod.Spec.Containers[i].Image
		}
	}
	if !apiequality.Semantic.DeepEqual(*allowed, pod.Spec) {
		return invalid(pod, field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than images"))
	}
	if !apiequality.Semantic.DeepEqual(was.Spec, pod.Spec) {
		pod.Generation++
	}
	return nil
}

func newFinalizers(was, is client.Object) (added []string) {
	had := map[string]bool{}
	for _, f := range was.GetFinalizers() {
		had[f] = true
	}
	for _, f := range is.GetFinalizers() {
		if !had[f] {
			added = append(added, f)
		}
	}
	return added
}

func invalid(obj client.Object, why *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: objects.KindOf(obj)}, obj.GetName(), field.ErrorList{why})
}
