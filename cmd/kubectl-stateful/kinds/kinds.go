// Package kinds lists the four kinds that kubectl stateful supports, with the properties common to
// all of them.
package kinds

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// Kind is one kind, with the names in its CRD.
type Kind struct {
	schema.GroupVersionKind
	Plural, Short string
	New           func() client.Object
	NewList       func() client.ObjectList
}

// The four kinds.
var (
	StatefulCluster = Kind{
		GroupVersionKind: stcv1alpha1.GroupVersion.WithKind("StatefulCluster"), Plural: "statefulclusters", Short: "stc",
		New:     func() client.Object { return &stcv1alpha1.StatefulCluster{} },
		NewList: func() client.ObjectList { return &stcv1alpha1.StatefulClusterList{} },
	}
	ReplicatedStatefulSet = Kind{
		GroupVersionKind: rssv1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"), Plural: "replicatedstatefulsets", Short: "rss",
		New:     func() client.Object { return &rssv1alpha1.ReplicatedStatefulSet{} },
		NewList: func() client.ObjectList { return &rssv1alpha1.ReplicatedStatefulSetList{} },
	}
	ExtendedStatefulSet = Kind{
		GroupVersionKind: estsv1alpha1.GroupVersion.WithKind("ExtendedStatefulSet"), Plural: "extendedstatefulsets", Short: "ests",
		New:     func() client.Object { return &estsv1alpha1.ExtendedStatefulSet{} },
		NewList: func() client.ObjectList { return &estsv1alpha1.ExtendedStatefulSetList{} },
	}
	StatefulSingleton = Kind{
		GroupVersionKind: ssnv1.GroupVersion.WithKind("StatefulSingleton"), Plural: "statefulsingletons", Short: "ssn",
		New:     func() client.Object { return &ssnv1.StatefulSingleton{} },
		NewList: func() client.ObjectList { return &ssnv1.StatefulSingletonList{} },
	}
)

// All lists the four kinds.
var All = []Kind{StatefulCluster, ReplicatedStatefulSet, ExtendedStatefulSet, StatefulSingleton}

// Singular returns the name of one object of the kind, as kubectl writes it.
func (k Kind) Singular() string { return strings.ToLower(k.Kind) }

// Is reports whether it is that kind.
func (k Kind) Is(other Kind) bool { return k.GroupVersionKind == other.GroupVersionKind }

// Qualified returns the plural with the group, as kubectl writes it in errors.
func (k Kind) Qualified() string { return k.Plural + "." + k.Group }

// names returns all names of the kind that a user may use.
func (k Kind) names() []string {
	return []string{k.Plural, k.Singular(), k.Short, k.Qualified(), k.Singular() + "." + k.Group}
}

// Parse returns the kind with the given name.
func Parse(name string) (Kind, error) {
	for _, k := range All {
		if slices.Contains(k.names(), strings.ToLower(name)) {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("kubectl stateful does not support resource type %q; supported: %s", name, strings.Join(Shorts(), ", "))
}

// Shorts returns the short names of all kinds.
func Shorts() []string {
	shorts := make([]string, 0, len(All))
	for _, k := range All {
		shorts = append(shorts, k.Short)
	}
	return shorts
}

// ParseArgs parses KIND NAME or KIND/NAME.
func ParseArgs(args []string) (Kind, string, error) {
	kind, name := "", ""
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
		if strings.Contains(kind, "/") {
			return Kind{}, "", fmt.Errorf("there is no need to specify a resource type as a separate argument when passing arguments in resource/name form: %s %s", kind, name)
		}
	}
	if kind == "" || name == "" {
		return Kind{}, "", fmt.Errorf("an object is required, as KIND NAME or KIND/NAME, for example rss/db")
	}
	k, err := Parse(kind)
	return k, name, err
}

// Scheme returns a scheme with the types of the four kinds, and the built-in types that the plugin reads.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme,
		batchv1.AddToScheme, coordinationv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
		stcv1alpha1.AddToScheme, rssv1alpha1.AddToScheme, estsv1alpha1.AddToScheme, ssnv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return scheme, nil
}

// State is the part of the status that every kind has.
type State struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
}

// StateOf returns the state of an object of one of the kinds.
func StateOf(object client.Object) State {
	switch o := object.(type) {
	case *stcv1alpha1.StatefulCluster:
		return State{o.Status.ObservedGeneration, o.Status.Conditions}
	case *rssv1alpha1.ReplicatedStatefulSet:
		return State{o.Status.ObservedGeneration, o.Status.Conditions}
	case *estsv1alpha1.ExtendedStatefulSet:
		return State{o.Status.ObservedGeneration, o.Status.Conditions}
	case *ssnv1.StatefulSingleton:
		return State{o.Status.ObservedGeneration, o.Status.Conditions}
	}
	return State{}
}
