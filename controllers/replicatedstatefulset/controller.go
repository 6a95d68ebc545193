package replicatedstatefulset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/follow"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/livepods"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// Reconciler reconciles ReplicatedStatefulSets.
type Reconciler struct {
	// reader reads the state of a set.
	reader *reader
	// runner does all writes.
	runner *action.Runner
	// tracker tracks the writes that the cache does not show yet.
	tracker *consistency.Tracker
	// reporter reports the result of a pass.
	reporter *reporter
}

// newReconciler returns a Reconciler whose writes are made by the runner.
func newReconciler(read *reader, runner *action.Runner, tracker *consistency.Tracker, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{reader: read, runner: runner, tracker: tracker, reporter: &reporter{reader: read, runner: runner, events: recorder}}
}

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
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete,roleName=replicatedstatefulset-role
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,roleName=replicatedstatefulset-role

// Reconcile runs one pass for a ReplicatedStatefulSet.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	began := r.reader.Now()
	defer func() { passSeconds.Observe(r.reader.Now().Sub(began).Seconds()) }()
	return r.pass().Run(ctx, req.NamespacedName).Result()
}

func (r *Reconciler) pass() engine.Pass[*v1alpha1.ReplicatedStatefulSet, *plan] {
	return engine.Pass[*v1alpha1.ReplicatedStatefulSet, *plan]{
		Cache: r.reader.Cache, Live: r.reader.Live, Tracker: r.tracker, AsCached: asCached,
		New:    func() *v1alpha1.ReplicatedStatefulSet { return &v1alpha1.ReplicatedStatefulSet{} },
		Unread: func(set *v1alpha1.ReplicatedStatefulSet) bool { return unreadParts(set).Any() },
		Refuse: func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) report.Outcome {
			return reportUnread(ctx, r.runner, set)
		},
		Decide: r.consider,
		// No watch event announces that the namespace of an object is being deleted.
		Recheck: func(p *plan) bool { return !p.asksOnly() || p.looksLive || p.on.deleting() },
		Size:    func(p *plan) (int, any) { return len(p.on.members), &p.on.set.Spec.Pod },
		Act:     r.act,
		Deleted: r.afterDeletion,
	}
}

// unreadParts returns why the operator has not read parts of a set.
func unreadParts(set *v1alpha1.ReplicatedStatefulSet) unread.Parts {
	return unread.Parts{Spec: set.Spec.Problem, Status: set.Status.Problem}
}

// slimSet is a cache transform that drops the spec of a set that is too large to keep.
func slimSet(obj any) (any, error) {
	set, ok := obj.(*v1alpha1.ReplicatedStatefulSet)
	if !ok {
		return obj, nil
	}
	if problem := unread.Bound(&set.ObjectMeta, &set.Spec); problem != "" {
		set.Spec = v1alpha1.ReplicatedStatefulSetSpec{Problem: problem}
	}
	return set, nil
}

// reportUnread reports why a set cannot be read.
func reportUnread(ctx context.Context, runner unread.Runner, set *v1alpha1.ReplicatedStatefulSet) report.Outcome {
	next := set.DeepCopy()
	next.Status.ObservedGeneration = set.Generation
	return unreadParts(set).Report(ctx, runner, set, next, &next.Status.Conditions)
}

func (r *Reconciler) consider(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, from engine.View) (*plan, error) {
	w, err := r.reader.observe(ctx, set, from)
	if err != nil {
		return nil, err
	}
	p := decide(w)
	return &p, nil
}

func (r *Reconciler) act(ctx context.Context, p *plan) report.Outcome {
	outcomes := r.runner.Run(ctx, client.ObjectKeyFromObject(p.on.set), p.Steps)
	r.reader.keepBoard(p.on.world)
	return r.reporter.report(ctx, p, outcomes)
}

// afterDeletion removes the finalizers of the pods of an object that was deleted without our
// finalizer. No other code would remove them.
func (r *Reconciler) afterDeletion(ctx context.Context, key types.NamespacedName) report.Outcome {
	r.tracker.Forget(key)
	set := &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace,
		Name:      key.Name,
	}}
	if err := r.reader.Live.Get(ctx, key, &v1alpha1.ReplicatedStatefulSet{}); !apierrors.IsNotFound(err) {
		if err != nil {
			return report.Retry(err)
		}
		return report.Done() // it exists, and its watch event is on the way
	}
	if r.reader.forget(ctx, key) {
		deletedTotal.Inc()
	}
	forgetMetrics(key)
	var pods corev1.PodList
	if err := r.reader.Live.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels(ownLabels(set))); err != nil {
		return report.Retry(fmt.Errorf("list pods: %w", err))
	}
	var chains action.Step
	for i := range pods.Items {
		m := &member{pod: &pods.Items[i]}
		if _, ours := ordinalOf(set, m.name()); ours && m.protected() {
			chains = append(chains, action.Chain{unprotect(m)})
		}
	}
	for _, o := range r.runner.Run(ctx, key, action.Steps{chains}) {
		if o.Err != nil && !apierrors.IsNotFound(o.Err) {
			return report.Retry(o.Err)
		}
	}
	return report.Done()
}

// Cache returns the options of the manager's cache for this kind: Nodes. All other objects are in a
// separate cache, because the manager's cache supports only one pod selector.
func Cache() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: slim.Node}}
}

// ownCache is a cache that the manager starts before its controllers.
type ownCache struct{ cache.Cache }

// GetCache makes the manager start it as a cache.
func (c ownCache) GetCache() cache.Cache { return c.Cache }

func newCache(mgr ctrl.Manager, namespaces []string) (ownCache, error) {
	managed := cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{v1alpha1.LabelManaged: v1alpha1.True}),
		Transform: slim.Child,
	}
	labelled := cache.ByObject{Transform: cutRule}
	options := cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.ReplicatedStatefulSet{}: {Transform: slimSet},
			&corev1.Pod{}:                     {Label: managed.Label, Transform: cutPod},
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

// cutPod is a cache transform that keeps the parts of a pod that decisions use. Pods are read live
// before they are patched.
func cutPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	cut := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: pod.Status}
	slim.Bounded(&cut.ObjectMeta, v1alpha1.AnnotationTemplate, v1alpha1.AnnotationContainer, v1alpha1.AnnotationConfigHash, v1alpha1.AnnotationInPlace)
	cut.Spec.NodeName = pod.Spec.NodeName
	if len(pod.Spec.InitContainers)+len(pod.Spec.Containers) > maxContainers {
		return cut, nil
	}
	for i := range pod.Spec.InitContainers {
		cut.Spec.InitContainers = append(
			cut.Spec.InitContainers,
			corev1.Container{Name: pod.Spec.InitContainers[i].Name},
		)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		kept := corev1.Container{Name: c.Name}
		if sleeps(c) {
			kept.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: c.Lifecycle.PreStop.Sleep}}
		}
		cut.Spec.Containers = append(cut.Spec.Containers, kept)
	}
	return cut, nil
}

// maxContainers is higher than a member can have. A foreign pod with our labels may have some ten
// thousand containers.
const maxContainers = 4 * bounds.Containers

// cutRule is a cache transform of ConfigMaps. Rules are selected by any label. A ConfigMap with
// more labels than are kept is not a rule.
func cutRule(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		slim.Bounded(&m.ObjectMeta)
	}
	return obj, nil
}

// asCached returns an empty object of the type, for reading a written object from the cache.
func asCached(obj client.Object) client.Object {
	switch obj.(type) {
	case *corev1.Pod:
		return &corev1.Pod{}
	case *corev1.Service:
		return &corev1.Service{}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{}
	case *policyv1.PodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{}
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{}
	}
	return &v1alpha1.ReplicatedStatefulSet{}
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
	own, err := newCache(mgr, o.Namespaces)
	if err != nil {
		return fmt.Errorf("create the cache: %w", err)
	}
	if err := indexConfig(own); err != nil {
		return fmt.Errorf("index the users of ConfigMaps and Secrets: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return fmt.Errorf("add the cache to the manager: %w", err)
	}
	board, woken, err := podexec.Attach(mgr, run, named)
	if err != nil {
		return err
	}
	live, err := livepods.New(mgr, bounds.PodBytes)
	if err != nil {
		return err
	}
	tracker := &consistency.Tracker{}
	secrets := &configuration.Secrets{Live: mgr.GetAPIReader(), Open: configuration.OpenSecrets(mgr, slim.Kept{}.Metadata)}
	cached := secrets.Beside(own)
	read := &reader{Cache: cached, Nodes: mgr.GetCache(), Live: live, Board: board, Now: time.Now, Lease: o.Lease}
	runner := &action.Runner{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: tracker,
		Commands: board,
		Lease:    o.Lease,
	}
	r := newReconciler(read, runner, tracker, mgr.GetEventRecorder("replicatedstatefulset"))
	turned := make(chan event.GenericEvent, 1024)
	settings := configSettings{key: o.Key, account: o.Account, restarts: o.Restarts, lease: o.Lease}
	read.config = newConfigReader(cached, mgr.GetAPIReader(), secrets, settings, turned)
	secrets.Users = read.usersOf(configuration.KindSecret)
	if o.Book.Name != "" {
		if err := follow.Object(mgr, &corev1.ConfigMap{}, o.Book, read.onBook); err != nil {
			return err
		}
	}
	return r.watch(mgr, own, woken, turned)
}

// watch registers the controller and its watches with the manager.
func (r *Reconciler) watch(mgr ctrl.Manager, own ownCache, woken, turned <-chan event.GenericEvent) error {
	child := enqueue.Children(
		func(o client.Object) string { return o.GetLabels()[v1alpha1.LabelApp] },
		r.tracker.Gone,
	)
	return ctrl.NewControllerManagedBy(mgr).
		Named("replicatedstatefulset").
		WatchesRawSource(source.Kind[client.Object](own, &v1alpha1.ReplicatedStatefulSet{}, &handler.EnqueueRequestForObject{}, predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](own, &corev1.Pod{}, child)).
		WatchesRawSource(source.Kind[client.Object](own, &corev1.Service{}, child)).
		WatchesRawSource(source.Kind[client.Object](own, &appsv1.StatefulSet{}, child)).
		WatchesRawSource(source.Kind[client.Object](own, &policyv1.PodDisruptionBudget{}, child)).
		WatchesRawSource(source.Kind[client.Object](
			own,
			configuration.Metadata(configuration.KindConfigMap),
			handler.EnqueueRequestsFromMapFunc(r.reader.onConfigMap),
		)).
		WatchesRawSource(source.Kind[client.Object](
			own,
			configuration.Metadata(configuration.KindConfigMap),
			handler.EnqueueRequestsFromMapFunc(r.reader.usersOf(configuration.KindConfigMap)),
		)).
		WatchesRawSource(r.reader.config.secrets).
		Watches(
			&corev1.Node{},
			handler.EnqueueRequestsFromMapFunc(r.reader.onNode),
			builder.WithPredicates(enqueue.NodeTurned),
		).
		WatchesRawSource(source.Channel(woken, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(turned, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Func(r.reader.book.lead)).
		WithOptions(enqueue.Workers(64)).
		Complete(r)
}
