package extendedstatefulset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/pass"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/livepods"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec/attach"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// +kubebuilder:rbac:groups=fissile.cloudfoundry.org,resources=extendedstatefulsets,verbs=get;list;watch;patch,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups=fissile.cloudfoundry.org,resources=extendedstatefulsets/status,verbs=patch,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups=fissile.cloudfoundry.org,resources=extendedstatefulsets/finalizers,verbs=update,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete,roleName=extendedstatefulset-role
// A WebSocket starts with a GET. API servers before 1.35 authorize it as get, later ones as create.
// +kubebuilder:rbac:groups="",resources=pods/exec,verbs=get;create,roleName=exec-role
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch,roleName=extendedstatefulset-role
// Content is read by name, and only if it is referenced. Metadata is patched if the user requests owner
// references.
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;patch,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;patch,roleName=secrets-role
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete,roleName=extendedstatefulset-role
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,roleName=extendedstatefulset-role
// The StatefulSet controller reports only in an event why it cannot create a pod.
// +kubebuilder:rbac:groups="",resources=events,verbs=list,roleName=extendedstatefulset-role

// slimSet is a cache transform that drops the spec of a set that exceeds the size limit.
func slimSet(obj any) (any, error) {
	set, ok := obj.(*v1alpha1.ExtendedStatefulSet)
	if !ok {
		return obj, nil
	}
	if problem := unread.Bound(&set.ObjectMeta, &set.Spec); problem != "" {
		set.Spec = v1alpha1.ExtendedStatefulSetSpec{Problem: problem}
	}
	return set, nil
}

// Cache returns the objects of this kind in the manager's cache: none. This kind uses its own cache,
// because the manager's cache holds a single selection of pods.
func Cache() map[client.Object]cache.ByObject { return nil }

// ownCache is a cache that the manager starts before its controllers.
type ownCache struct{ cache.Cache }

// GetCache returns the cache. The manager uses this method to detect caches.
func (c ownCache) GetCache() cache.Cache { return c.Cache }

// newCache returns the cache of this kind. It holds only objects with the operator's label, except
// Services and the metadata of ConfigMaps.
func newCache(mgr ctrl.Manager, namespaces []string) (ownCache, error) {
	exists, err := labels.NewRequirement(v1alpha1.LabelSet, selection.Exists, nil)
	if err != nil {
		return ownCache{}, err
	}
	labeled := cache.ByObject{Label: labels.NewSelector().Add(*exists), Transform: slim.Child}
	options := cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.ExtendedStatefulSet{}: {Transform: slimSet},
			// A Service that a template references may belong to any owner.
			&corev1.Service{}: {Transform: observe.CutService}, &appsv1.StatefulSet{}: labeled, &batchv1.Job{}: {Label: labeled.Label, Transform: observe.CutJob}, &policyv1.PodDisruptionBudget{}: labeled, &corev1.PersistentVolumeClaim{}: labeled,
			configuration.Metadata(configuration.KindConfigMap): {Transform: cutOrigin},
			&corev1.Pod{}: {Label: labeled.Label, Transform: observe.CutPod},
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

// cutOrigin is a cache transform for ConfigMaps and Secrets, the origins of configuration. It keeps only
// metadata.
func cutOrigin(obj any) (any, error) {
	return slim.Kept{Annotations: []string{v1alpha1.AnnotationGuard}}.Metadata(obj)
}

// Options are the settings of the controller.
type Options struct {
	// Namespaces are the namespaces that the controller acts in; empty means all.
	Namespaces []string
	// Key is the key of configuration hashes.
	Key configuration.Key
	// Restarts is the max number of objects that restart their pods at the same time because their
	// configuration changed; 0 or less means no limit.
	Restarts int
	// Account is the service account of the operator as namespace:name. Messages about missing
	// permissions name it. "" means unknown.
	Account string
	// Lease reports whether this process leads, and during which time it watched the cluster.
	Lease *leadership.Lease
}

// Setup adds the controller to the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	executor, err := podexec.NewExecutor(mgr.GetConfig(), mgr.GetAPIReader(), o.Lease)
	if err != nil {
		return err
	}
	return setup(mgr, o, executor.Run)
}

// setup adds the controller to the manager, with run as the function that runs commands in pods.
func setup(mgr ctrl.Manager, o Options, run func(context.Context, podexec.Command) podexec.Result) error {
	own, err := newCache(mgr, o.Namespaces)
	if err != nil {
		return fmt.Errorf("create cache: %w", err)
	}
	if err := observe.IndexConfig(own); err != nil {
		return fmt.Errorf("index references to configuration: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return fmt.Errorf("add cache to manager: %w", err)
	}
	board, ended, err := attach.Board(mgr, run, observe.Named)
	if err != nil {
		return err
	}
	live, err := livepods.New(mgr, bounds.PodBytes)
	if err != nil {
		return err
	}
	tracker := &consistency.Tracker{}
	secrets := &configuration.Secrets{Live: mgr.GetAPIReader(), Open: configuration.OpenSecrets(mgr, cutOrigin, observe.IndexSecrets)}
	cached := secrets.Beside(own)
	read := &observe.Reader{Cache: cached, Live: live, Board: board, Now: time.Now, Lease: o.Lease}
	runner := &action.Runner{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: tracker,
		Commands: board,
		Lease:    o.Lease,
	}
	woken := make(chan event.GenericEvent, 1024)
	read.Config = observe.NewConfigReader(cached, mgr.GetAPIReader(), secrets,
		observe.ConfigSettings{Key: o.Key, Account: o.Account, Restarts: o.Restarts, Lease: o.Lease}, woken)
	secrets.Users = read.Config.Users
	child := enqueue.Children(enqueue.Label(v1alpha1.LabelSet), tracker.Gone)
	owned := enqueue.Children(enqueue.Controller(v1alpha1.Kind), tracker.Gone)
	return ctrl.NewControllerManagedBy(mgr).
		Named("extendedstatefulset").
		WatchesRawSource(source.Kind[client.Object](
			own,
			&v1alpha1.ExtendedStatefulSet{},
			&handler.EnqueueRequestForObject{},
			predicate.ResourceVersionChangedPredicate{},
		)).
		WatchesRawSource(source.Kind[client.Object](own, &corev1.Pod{}, child)).
		WatchesRawSource(source.Kind[client.Object](own, &corev1.PersistentVolumeClaim{}, child)).
		WatchesRawSource(source.Kind[client.Object](own, &appsv1.StatefulSet{}, owned)).
		WatchesRawSource(source.Kind[client.Object](own, &batchv1.Job{}, observe.JobHandler{EventHandler: owned, R: read})).
		WatchesRawSource(source.Kind[client.Object](own, &corev1.Service{}, owned)).
		WatchesRawSource(source.Kind[client.Object](own, &policyv1.PodDisruptionBudget{}, owned)).
		WatchesRawSource(source.Kind[client.Object](own, configuration.Metadata(configuration.KindConfigMap), handler.EnqueueRequestsFromMapFunc(read.Config.Users))).
		WatchesRawSource(secrets).
		WatchesRawSource(source.Channel(woken, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(ended, &handler.EnqueueRequestForObject{})).
		WithOptions(enqueue.Workers(64)).
		Complete(pass.New(read, runner, tracker, mgr.GetEventRecorder("extendedstatefulset")))
}
