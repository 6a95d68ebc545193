package statefulsingleton

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// annotationTouched on a ReplicaSet or StatefulSet is when the operator last woke its
// controller.
const annotationTouched = v1.Prefix + "touched"

// touchOwners wakes the controllers whose pods the guard rejected while the webhook was
// down. Otherwise a ReplicaSet retries only after up to 16 minutes.
func touchOwners(f *facts, p *plan) {
	if f.object == nil || f.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, owner := range f.refusedOwners {
		touched := owner.DeepCopyObject().(object)
		annotations := touched.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationTouched] = f.now.UTC().Format(metav1.RFC3339Micro)
		touched.SetAnnotations(annotations)
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: touched, From: owner, Reason: reasonTouch}})
	}
	p.Do(chains...)
}

// object is any object that can be patched.
type object interface {
	metav1.Object
	runtime.Object
}
