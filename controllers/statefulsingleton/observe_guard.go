package statefulsingleton

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// crdName is of the definition that the guard takes its parameters from.
const crdName = "statefulsingletons.apps.openshift.statefulsingleton.com"

// owner is the definition of StatefulSingletons, with which the garbage collector
// takes the guard away: a policy whose parameters have no kind denies every pod.
func (g *Guard) owner(ctx context.Context) (metav1.OwnerReference, error) {
	crd := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	if err := g.Live.Get(ctx, types.NamespacedName{Name: crdName}, &crd); err != nil {
		return metav1.OwnerReference{}, err
	}
	if crd.DeletionTimestamp != nil {
		return metav1.OwnerReference{}, fmt.Errorf("%s is being deleted", crdName)
	}
	return metav1.OwnerReference{APIVersion: crd.APIVersion, Kind: crd.Kind, Name: crd.Name, UID: crd.UID}, nil
}
