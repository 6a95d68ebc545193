// Package v1alpha1 contains the API of StatefulCluster: its fields with their defaults and limits,
// and the names of its conditions, reasons, labels and annotations.
//
// +kubebuilder:object:generate=true
// +groupName=enge.me
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "enge.me", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &StatefulCluster{}, &StatefulClusterList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
