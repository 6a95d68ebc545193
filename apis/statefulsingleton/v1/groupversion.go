// Package v1 contains the API of StatefulSingleton: its fields with their defaults and limits, and
// every name that the operator sets on pods.
//
// +kubebuilder:object:generate=true
// +groupName=apps.openshift.statefulsingleton.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.openshift.statefulsingleton.com", Version: "v1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &StatefulSingleton{}, &StatefulSingletonList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
