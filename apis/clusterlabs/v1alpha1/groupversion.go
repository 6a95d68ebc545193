// Package v1alpha1 contains the API of ReplicatedStatefulSet: its fields with their defaults and
// limits, and every name that the operator sets on objects.
//
// +kubebuilder:object:generate=true
// +groupName=clusterlabs.org
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "clusterlabs.org", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ReplicatedStatefulSet{}, &ReplicatedStatefulSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
