package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// annotationTouched on a ReplicaSet or StatefulSet is when the operator last triggered its
// controller by this annotation.
const annotationTouched = v1.Prefix + "touched"

// touchOwners annotates the owners whose pods the guard rejected while the webhook was down, so
// that their controllers create the pods at once. Without that a ReplicaSet retries only after
// up to 16 minutes.
func touchOwners(f *facts.Facts, p *Plan) {
	if f.Object == nil || f.ReleasesAll() {
		return
	}
	var chains []action.Chain
	for _, owner := range f.RefusedOwners {
		touched := owner.DeepCopyObject().(facts.Object)
		annotations := touched.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationTouched] = f.Now.UTC().Format(metav1.RFC3339Micro)
		touched.SetAnnotations(annotations)
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: touched, From: owner, Reason: reasonTouch}})
	}
	p.Do(chains...)
}
