package replicatedstatefulset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/follow"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
	"github.com/stateful-operator/stateful-operator/controllers/internal/livepods"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec/attach"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/pass"
)

// +kubebuilder:rbac:groups=clusterlabs.org,resources=replicatedstatefulsets,verbs=get;list;watch;patch,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=clusterlabs.org,resources=replicatedstatefulsets/status,verbs=patch,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=clusterlabs.org,resources=replicatedstatefulsets/finalizers,verbs=update,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch,roleName=replicatedstatefulset-role
// A WebSocket begins with a GET. API servers before 1.35 check the verb get for it, later ones create.
// +kubebuilder:rbac:groups="",resources=pods/exec,verbs=get;create,roleName=exec-role
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch;delete,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch,roleName=secrets-role
// +kubebuilder:rbac:groups="",resources=events,verbs=list,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch,roleName=cluster-scoped-role
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get,roleName=cluster-scoped-role
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update;patch;delete,roleName=fencing-role
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;create;patch;delete,roleName=fencing-role

// Cache returns the options of the manager's cache for this kind: Nodes. All other objects are in a
// separate cache, because the manager's cache supports only one pod selector.
func Cache() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: slim.Node}}
}

// ownCache is a cache that the manager starts before its controllers.
type ownCache struct{ cache.Cache }

// GetCache makes the manager start it as a cache.
func (c ownCache) GetCache() cache.Cache { return c.Cache }

// newCache returns the cache of all objects except Nodes. Of the pods, Services, StatefulSets,
// budgets and claims it contains those with our label. Of ConfigMaps it contains all, but only
// metadata.
func newCache(mgr ctrl.Manager, namespaces []string) (ownCache, error) {
	managed := cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{v1alpha1.LabelManaged: v1alpha1.True}),
		Transform: slim.Child,
	}
	labelled := cache.ByObject{Transform: observe.CutRule}
	options := cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.ReplicatedStatefulSet{}: {Transform: observe.SlimSet},
			&corev1.Pod{}:                     {Label: managed.Label, Transform: observe.CutPod},
			&corev1.Service{}:                 managed, &appsv1.StatefulSet{}: managed, &policyv1.PodDisruptionBudget{}: managed, &corev1.PersistentVolumeClaim{}: managed,
			configuration.Metadata(configuration.KindConfigMap): labelled,
		}}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	c, err := cache.New(mgr.GetConfig(), options)
	return ownCache{c}, err
}

// Options are the settings of the controller.
type Options struct {
	// Namespaces are the namespaces to watch. If empty, all are watched.
	Namespaces []string
	// Book is the ConfigMap in which the webhooks record requested evictions of primaries. If its
	// name is empty, there is none.
	Book types.NamespacedName
	// Key is the key for hashes of configuration.
	Key configuration.Key
	// Restarts is the max number of sets that recreate their members for a configuration change
	// concurrently. 0 or less means unlimited.
	Restarts int
	// Account is the operator's service account as namespace:name, for messages about missing
	// rights. It is "" if unknown.
	Account string
	// Lease reports whether this process leads, and in which time it could observe the cluster.
	Lease *leadership.Lease
	// AgentImage returns the image with the agent of spec.application. If it is nil, such sets get
	// no pods.
	AgentImage func(context.Context) (string, error)
	// ImageVolumes reports whether pods can mount that image.
	ImageVolumes *nodestate.ImageVolumes
	// Namespace is the operator's own namespace. The name of the policy on Leases ends with it.
	Namespace string
}

// Setup adds the controller to the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	executor, err := podexec.NewExecutor(mgr.GetConfig(), mgr.GetAPIReader(), o.Lease)
	if err != nil {
		return err
	}
	return setup(mgr, o, executor.Run)
}

// setup is Setup with a function that runs commands.
func setup(mgr ctrl.Manager, o Options, run func(context.Context, podexec.Command) podexec.Result) error {
	kindCache, err := newCache(mgr, o.Namespaces)
	if err != nil {
		return fmt.Errorf("create the cache: %w", err)
	}
	if err := observe.IndexConfig(kindCache); err != nil {
		return fmt.Errorf("index the users of ConfigMaps and Secrets: %w", err)
	}
	if err := mgr.Add(kindCache); err != nil {
		return fmt.Errorf("add the cache to the manager: %w", err)
	}
	// The Board sends a set to commandEnded when one of its commands has ended.
	board, commandEnded, err := attach.Board(mgr, run, observe.Named)
	if err != nil {
		return err
	}
	live, err := livepods.New(mgr, bounds.PodBytes)
	if err != nil {
		return err
	}
	tracker := &consistency.Tracker{}
	secrets := &configuration.Secrets{Live: mgr.GetAPIReader(), Open: configuration.OpenSecrets(mgr, slim.Kept{}.Metadata)}
	cached := secrets.Beside(kindCache)
	leases, leaseChanged, err := watchLeases(mgr)
	if err != nil {
		return err
	}
	reader := &observe.Reader{Cache: cached, Nodes: mgr.GetCache(), Live: live, Board: board, Now: time.Now, Lease: o.Lease, AgentImage: o.AgentImage, ImageVolumes: o.ImageVolumes,
		Leases: leases, Policy: observe.NewPolicyChecker(mgr.GetAPIReader(), o.Namespace, o.Namespaces), Namespace: o.Namespace}
	if err := mgr.Add(reader.Policy); err != nil {
		return fmt.Errorf("add the check of the policy on Leases: %w", err)
	}
	runner := &action.Runner{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: cachedOnly{tracker},
		Commands: board,
		Lease:    o.Lease,
	}
	r := pass.New(reader, runner, tracker, mgr.GetEventRecorder("replicatedstatefulset"))
	restartDue := make(chan event.GenericEvent, 1024) // sets whose turn for a restart has come
	settings := observe.ConfigSettings{Key: o.Key, Account: o.Account, Restarts: o.Restarts, Lease: o.Lease}
	reader.Config = observe.NewConfigReader(cached, mgr.GetAPIReader(), secrets, settings, restartDue)
	secrets.Users = reader.UsersOf(configuration.KindSecret)
	if o.Book.Name != "" {
		if err := follow.Object(mgr, &corev1.ConfigMap{}, o.Book, reader.OnBook); err != nil {
			return err
		}
	}
	return watch(mgr, passes{r, reader, tracker}, kindCache, commandEnded, restartDue, leaseChanged)
}

// watchLeases returns a watch of the Leases of members, and the channel to which it sends their sets.
func watchLeases(mgr ctrl.Manager) (*leasewatch.Watch, <-chan event.GenericEvent, error) {
	changed := make(chan event.GenericEvent, 1024)
	root, end := context.WithCancel(context.Background())
	watch := leasewatch.New(time.Now, v1alpha1.LabelLease, leasewatch.OpenerOf(mgr, root), func(key types.NamespacedName) {
		select {
		case changed <- event.GenericEvent{Object: observe.Named(key)}:
		case <-root.Done():
		}
	})
	return watch, changed, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer end()
		return watch.Start(ctx)
	}))
}

// cachedOnly records the writes of objects that the cache has. Leases and the rights on them are always read from
// the API server.
type cachedOnly struct{ *consistency.Tracker }

// Wrote records a create or patch.
func (c cachedOnly) Wrote(key types.NamespacedName, obj client.Object) {
	if isCached(obj) {
		c.Tracker.Wrote(key, obj)
	}
}

// Deleted records a delete.
func (c cachedOnly) Deleted(key types.NamespacedName, obj client.Object) {
	if isCached(obj) {
		c.Tracker.Deleted(key, obj)
	}
}

func isCached(obj client.Object) bool {
	switch obj.(type) {
	case *coordinationv1.Lease, *rbacv1.Role, *rbacv1.RoleBinding:
		return false
	}
	return true
}

// passes is the Reconciler, with the parts that watches use.
type passes struct {
	*pass.Reconciler
	reader  *observe.Reader
	tracker *consistency.Tracker
}

// watch registers the controller and its watches with the manager. Besides watch events, the
// channels and the eviction book queue sets.
func watch(mgr ctrl.Manager, r passes, kindCache ownCache, channels ...<-chan event.GenericEvent) error {
	child := enqueue.Children(
		func(o client.Object) string { return o.GetLabels()[v1alpha1.LabelApp] },
		r.tracker.Gone,
	)
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("replicatedstatefulset").
		WatchesRawSource(source.Kind[client.Object](kindCache, &v1alpha1.ReplicatedStatefulSet{}, &handler.EnqueueRequestForObject{}, predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](kindCache, &corev1.Pod{}, child)).
		WatchesRawSource(source.Kind[client.Object](kindCache, &corev1.Service{}, child)).
		WatchesRawSource(source.Kind[client.Object](kindCache, &appsv1.StatefulSet{}, child)).
		WatchesRawSource(source.Kind[client.Object](kindCache, &policyv1.PodDisruptionBudget{}, child)).
		WatchesRawSource(source.Kind[client.Object](
			kindCache,
			configuration.Metadata(configuration.KindConfigMap),
			handler.EnqueueRequestsFromMapFunc(r.reader.OnConfigMap),
		)).
		WatchesRawSource(source.Kind[client.Object](
			kindCache,
			configuration.Metadata(configuration.KindConfigMap),
			handler.EnqueueRequestsFromMapFunc(r.reader.UsersOf(configuration.KindConfigMap)),
		)).
		WatchesRawSource(r.reader.Config.Secrets).
		Watches(
			&corev1.Node{},
			handler.EnqueueRequestsFromMapFunc(r.reader.OnNode),
			builder.WithPredicates(enqueue.NodeTurned),
		).
		WatchesRawSource(source.Func(r.reader.Book.Lead)).
		WatchesRawSource(source.Channel(r.reader.Policy.Turned, handler.EnqueueRequestsFromMapFunc(r.reader.OnPolicy))).
		WithOptions(enqueue.Workers(64))
	for _, channel := range channels {
		controller.WatchesRawSource(source.Channel(channel, &handler.EnqueueRequestForObject{}))
	}
	return controller.Complete(r)
}
