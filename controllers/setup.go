// Package controllers sets up the controllers of all kinds.
package controllers

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset"
	extendedwebhooks "github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset"
	replicatedchildren "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	replicatedwebhooks "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster"
	clusterwebhooks "github.com/stateful-operator/stateful-operator/controllers/statefulcluster/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton"
	singletonobserve "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	singletonwebhooks "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// kinds is the table of all kinds.
var kinds = []kind{
	{
		name: "StatefulCluster", addToScheme: engev1alpha1.AddToScheme, cache: statefulcluster.Cache,
		controller: setupClusters, webhook: plain(clusterwebhooks.SetupWebhook), requester: clusterwebhooks.Requester,
		list:       &engev1alpha1.StatefulClusterList{},
		conditions: of(func(o *engev1alpha1.StatefulCluster) []metav1.Condition { return o.Status.Conditions }),
	},
	{
		name: "ReplicatedStatefulSet", addToScheme: clusterlabsv1alpha1.AddToScheme, cache: replicatedstatefulset.Cache,
		controller: setupReplicated, webhook: setupReplicatedWebhook, requester: replicatedwebhooks.Requester, installer: installReplicated,
		list:       &clusterlabsv1alpha1.ReplicatedStatefulSetList{},
		conditions: of(func(o *clusterlabsv1alpha1.ReplicatedStatefulSet) []metav1.Condition { return o.Status.Conditions }),
	},
	{
		name: extendedStatefulSet, addToScheme: fissilev1alpha1.AddToScheme, cache: extendedstatefulset.Cache,
		controller: setupExtended, webhook: plain(extendedwebhooks.SetupWebhook), requester: extendedwebhooks.Requester,
		list:       &fissilev1alpha1.ExtendedStatefulSetList{},
		conditions: of(func(o *fissilev1alpha1.ExtendedStatefulSet) []metav1.Condition { return o.Status.Conditions }),
	},
	{
		name: statefulSingleton, addToScheme: statefulsingletonv1.AddToScheme, cache: statefulsingleton.Cache,
		controller: setupSingletons, webhook: setupSingletonWebhook, requester: singletonwebhooks.Requester, installer: installSingletons,
		list:       &statefulsingletonv1.StatefulSingletonList{},
		conditions: of(func(o *statefulsingletonv1.StatefulSingleton) []metav1.Condition { return o.Status.Conditions }),
	},
}

// kind is one kind, with the functions that set it up.
type kind struct {
	name        string
	addToScheme func(*runtime.Scheme) error
	controller  func(ctrl.Manager, Options) error
	webhook     func(ctrl.Manager, Options) error
	cache       func() map[client.Object]cache.ByObject
	// requester returns the rights that the requester of an object needs.
	requester func() requester.Kind
	// installer maintains additional objects of the kind in the cluster; nil if it has none.
	installer func(ctrl.Manager, policy.Keeper, Options) error
	// list is an empty list of the kind, and conditions returns the conditions of one object. The
	// metrics of conditions are read with them.
	list       client.ObjectList
	conditions func(client.Object) []metav1.Condition
}

// plain adapts a setup function that needs no options.
func plain(setup func(ctrl.Manager) error) func(ctrl.Manager, Options) error {
	return func(mgr ctrl.Manager, _ Options) error { return setup(mgr) }
}

func setupClusters(mgr ctrl.Manager, o Options) error {
	return statefulcluster.Setup(mgr, o.lease)
}

func setupReplicated(mgr ctrl.Manager, o Options) error {
	return replicatedstatefulset.Setup(mgr, replicatedstatefulset.Options{
		Namespaces: o.WatchNamespaces, Book: o.evictionBook(), Key: o.configKey(mgr), Restarts: o.ConfigRestarts,
		Account: o.controllersAccount(), Lease: o.lease, AgentImage: o.agentImage(mgr.GetAPIReader()),
		ImageVolumes: o.imageVolumes(mgr), Namespace: o.Namespace,
	})
}

func setupReplicatedWebhook(mgr ctrl.Manager, o Options) error {
	return replicatedwebhooks.SetupWebhook(mgr, o.evictionBook(), o.evictionToken, o.agentImage(mgr.GetAPIReader()))
}

// evictionToken is in the path of the webhook for evictions.
func (o Options) evictionToken() string { return o.certificate.Caller().Token }

// installReplicated maintains the policy on the Leases of members. It also registers the webhook for
// evictions if the operator makes the certificates: only then can the webhook authenticate its caller.
func installReplicated(mgr ctrl.Manager, keeper policy.Keeper, o Options) error {
	if err := mgr.Add(&policy.Maintainer{
		Keeper: keeper, Subject: "The policy on the Leases of members", CRD: replicatedwebhooks.Requester().Definition(),
		Builders: []policy.Builder{replicatedchildren.BuildLeaseGuard}, Namespace: o.Namespace, Watched: o.WatchNamespaces,
		Interval: policy.Interval, Retry: policy.Interval,
	}); err != nil {
		return err
	}
	if !o.makesCertificates() {
		return nil
	}
	return mgr.Add(&replicatedwebhooks.EvictionWebhook{
		Keeper: keeper, Name: o.evictionBook().Name, Caller: o.certificate.Caller,
		Service:    types.NamespacedName{Namespace: o.Namespace, Name: o.certificateNames().Services[0]},
		Namespaces: policy.Namespaces(o.Namespace, o.WatchNamespaces),
	})
}

// evictionBook returns the name of the ConfigMap in which the webhooks record evictions for the
// controllers. It is empty if the operator's own namespace is unknown.
func (o Options) evictionBook() types.NamespacedName {
	if o.Namespace == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: evictionBook(o.Name)}
}

// evictionBook returns the name of the ConfigMap for that prefix of the names in config/.
func evictionBook(prefix string) string { return prefix + "-evictions" }

// extendedStatefulSet is the name of a kind with pods that a webhook mutates, so it needs the
// operator's namespace and certificates.
const extendedStatefulSet = "ExtendedStatefulSet"

func setupExtended(mgr ctrl.Manager, o Options) error {
	return extendedstatefulset.Setup(mgr, extendedstatefulset.Options{Namespaces: o.WatchNamespaces, Key: o.configKey(mgr), Restarts: o.ConfigRestarts, Account: o.controllersAccount(), Lease: o.lease})
}

// configKey returns the key for hashes of configuration. Each kind creates its own, and all of them
// use the same Secret.
func (o Options) configKey(mgr ctrl.Manager) *configKey {
	return &configKey{writer: mgr.GetClient(), live: mgr.GetAPIReader(), secret: types.NamespacedName{Namespace: o.Namespace, Name: o.Name + "-config-key"}}
}

// controllersAccount returns the service account of the controllers as namespace:name, or "" if the
// operator's own namespace is unknown.
func (o Options) controllersAccount() string {
	if o.Namespace == "" {
		return ""
	}
	return o.Namespace + ":" + o.Name + "-controller-manager"
}

// statefulSingleton is the name of a kind with pods that a webhook mutates, and with a guard. Both
// need the operator's namespace.
const statefulSingleton = "StatefulSingleton"

func setupSingletons(mgr ctrl.Manager, o Options) error {
	return statefulsingleton.Setup(mgr, statefulsingleton.Options{Namespace: o.Namespace, Watched: o.WatchNamespaces, Lease: o.lease})
}

func installSingletons(mgr ctrl.Manager, keeper policy.Keeper, o Options) error {
	return mgr.Add(singletonobserve.NewGuardKeeper(keeper, o.Namespace, o.WatchNamespaces))
}

func setupSingletonWebhook(mgr ctrl.Manager, o Options) error {
	image, err := o.gateImage(context.Background(), mgr.GetAPIReader())
	if err != nil {
		return err
	}
	return singletonwebhooks.SetupWebhook(mgr, image, o.imageVolumes(mgr), o.Namespace)
}

// Kinds returns the names of all kinds that this program can serve.
func Kinds() []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Setup adds the chosen components for the chosen kinds, and everything that the servers of this
// process need, to the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	options.Build.measure()
	if err := options.watchAPIServer(mgr); err != nil {
		return err
	}
	watch := &requester.Watch{Live: mgr.GetAPIReader(), Namespace: options.Namespace, Accounts: accountPolicies(options.Name, options.Namespace)}
	for _, k := range options.kinds() {
		watch.Kinds = append(watch.Kinds, k.requester())
		if options.runs(Controllers) {
			if err := k.controller(mgr, options); err != nil {
				return fmt.Errorf("set up the controller of %s: %w", k.name, err)
			}
		}
		if options.runs(Webhooks) {
			if err := k.webhook(mgr, options); err != nil {
				return fmt.Errorf("set up the webhook of %s: %w", k.name, err)
			}
		}
	}
	if options.runs(Controllers) {
		if err := mgr.Add(watch); err != nil {
			return fmt.Errorf("set up the check of policies: %w", err)
		}
		conditions := &conditionMetrics{reader: mgr.GetCache(), registry: metrics.Registry, kinds: options.kinds()}
		if err := mgr.Add(conditions); err != nil {
			return fmt.Errorf("set up the metrics of conditions: %w", err)
		}
	}
	if options.runs(Installer) {
		if err := options.setupInstaller(mgr); err != nil {
			return err
		}
	}
	return options.setupServers(mgr)
}

// Scheme returns a scheme with the built-in types and the types of every kind, whether it is served
// or not.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the built-in types: %w", err)
	}
	for _, k := range kinds {
		if err := k.addToScheme(scheme); err != nil {
			return nil, fmt.Errorf("register the types of %s: %w", k.name, err)
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

// cache returns cache options that are limited to the watched namespaces and the types of the
// chosen kinds. The manager caches a type only once, and uses any of two entries for it; therefore
// the entry of the first kind in the table is used. Kinds that need the same type must have the
// same entry, which a test checks.
func (o Options) cache(scheme *runtime.Scheme) (cache.Options, error) {
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{}}
	named := map[schema.GroupVersionKind]bool{}
	for _, k := range o.kinds() {
		for object, needed := range k.cache() {
			gvk, err := apiutil.GVKForObject(object, scheme)
			if err != nil {
				return cache.Options{}, fmt.Errorf("find the cached types of %s: %w", k.name, err)
			}
			if !named[gvk] {
				options.ByObject[object], named[gvk] = needed, true
			}
		}
	}
	for _, namespace := range o.WatchNamespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options, nil
}
