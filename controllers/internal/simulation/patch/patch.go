// Package patch simulates how an API server applies a patch.
package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Apply returns the object have after a patch. As in an API server, each verb can change only its part
// of an object; changes of other parts are ignored.
func Apply(a action.Action, have client.Object) (client.Object, error) {
	if a.Verb == action.PatchStatus {
		return withStatus(objects.Clone(have), a.Object)
	}
	next, err := merge(a, have)
	if err != nil {
		return nil, err
	}
	if a.Verb == action.SetCondition {
		return withStatus(objects.Clone(have), next)
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
	if _, hasStatus := reflect.TypeOf(next).Elem().FieldByName("Status"); hasStatus {
		return withStatus(next, have)
	}
	return next, nil
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

// withStatus returns obj with the status of another object.
func withStatus(obj, of client.Object) (client.Object, error) {
	from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	to, err2 := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	to["status"] = from["status"]
	next := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	return next, runtime.DefaultUnstructuredConverter.FromUnstructured(to, next)
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
