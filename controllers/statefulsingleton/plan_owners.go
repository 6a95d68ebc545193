package statefulsingleton

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// annotationTouched on a ReplicaSet or StatefulSet is when it was woken.
const annotationTouched = v1.Prefix + "touched"

// touchOwners wakes the controllers whose pods the guard refused while the
// webhook was away: a ReplicaSet would try again after up to 16 minutes only.
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

// object is anything that can be patched.
type object interface {
	metav1.Object
	runtime.Object
}
