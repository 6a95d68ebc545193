// Package controllers puts together the controllers of all kinds.
package controllers

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster"
)

// kinds is the table of contents.
var kinds = []kind{
	{"StatefulCluster", engev1alpha1.AddToScheme, statefulcluster.Setup, statefulcluster.SetupWebhook, statefulcluster.Cache},
}

// kind is one kind: its types, its controller, its webhook, and what it caches.
type kind struct {
	name        string
	addToScheme func(*runtime.Scheme) error
	controller  func(ctrl.Manager) error
	webhook     func(ctrl.Manager) error
	cache       func() map[client.Object]cache.ByObject
}

// statefulSingleton is the one kind that asks something of the options.
const statefulSingleton = "StatefulSingleton"

// Kinds names every kind that this program can serve.
func Kinds() []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Setup adds the controllers and webhooks of the chosen kinds, and what the
// servers of this process need, to the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	for _, k := range options.kinds() {
		if err := k.controller(mgr); err != nil {
			return fmt.Errorf("setting up the controller of %s: %w", k.name, err)
		}
		if !options.Webhooks {
			continue
		}
		if err := k.webhook(mgr); err != nil {
			return fmt.Errorf("setting up the webhook of %s: %w", k.name, err)
		}
	}
	return options.setupServers(mgr)
}

// Scheme knows the built-in types and those of every kind, chosen or not.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the built-in types: %w", err)
	}
	for _, k := range kinds {
		if err := k.addToScheme(scheme); err != nil {
			return nil, fmt.Errorf("registering the types of %s: %w", k.name, err)
		}
	}
	return scheme, nil
}

func (o Options) kinds() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		return !slices.Contains(o.Kinds, k.name)
	})
}

func (o Options) serves(kind string) bool { return slices.Contains(o.Kinds, kind) }

// cache is limited to the watched namespaces, and to what the chosen kinds need.
func (o Options) cache() cache.Options {
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{}}
	for _, k := range o.kinds() {
		maps.Copy(options.ByObject, k.cache())
	}
	for _, namespace := range o.WatchNamespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
