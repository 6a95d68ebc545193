package statefulsingleton

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/large"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/livepods"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// Options are what the controller needs to know of its process.
type Options struct {
	// Namespace is the operator's own.
	Namespace string
	// Watched are the namespaces that the operator acts in; none means all.
	Watched []string
	// Lease says whether this process leads, and in which time it could look.
	Lease *leadership.Lease
}

// runner carries out actions: an action.Runner, or a test's.
type runner interface {
	Run(ctx context.Context, key types.NamespacedName, steps action.Steps) []action.Outcome
}

// Reconciler starts the pods of StatefulSingletons one after another.
type Reconciler struct {
	// Cache reads what the watches brought; Live reads the API server.
	Cache, Live client.Reader
	// Runner is the only writer.
	Runner runner
	// Guard is the policy in the API server.
	Guard  *Guard
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// Lease says whether this process leads, and in which time it could look.
	Lease *leadership.Lease

	pods   *podWatch
	memory memory.Of[remembered]
	nodes  nodestate.Reader
}

// +kubebuilder:rbac:groups=apps.openshift.statefulsingleton.com,resources=statefulsingletons,verbs=get;list;watch;patch,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups=apps.openshift.statefulsingleton.com,resources=statefulsingletons/status,verbs=patch;update,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups=apps.openshift.statefulsingleton.com,resources=statefulsingletons/finalizers,verbs=update,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=statefulsingleton-wrapper,verbs=get;list;watch;create;patch;delete,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch,roleName=cluster-scoped-role
// +kubebuilder:rbac:groups=apps,resources=replicasets;statefulsets,verbs=get;list;patch,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get,roleName=cluster-scoped-role
// +kubebuilder:rbac:groups="",resources=events,verbs=list,roleName=statefulsingleton-role
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,roleName=statefulsingleton-role

// Reconcile looks at one StatefulSingleton and does the next thing.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, leave := large.Pass(ctx)
	defer leave()
	if err := r.pods.follow(ctx, req.Namespace); err != nil {
		return report.Retry(err).Result()
	}
	w, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return report.Retry(err).Result()
	}
	if w.unread() {
		return reportUnread(ctx, r.Runner, w.object).Result()
	}
	f := derive(w)
	p := decide(f)
	outcomes := r.Runner.Run(ctx, req.NamespacedName, p.Steps)
	return r.report(ctx, req.NamespacedName, f, &p, outcomes).Result()
}

// unreadParts returns why the operator does not have parts of an object.
func unreadParts(s *v1.StatefulSingleton) unread.Parts {
	return unread.Parts{Spec: s.Spec.Problem, Status: s.Status.Problem}
}

// undecoded reports whether a part of the object does not decode. Then nothing else was read.
func (w *world) unread() bool { return w.object != nil && unreadParts(w.object).Any() }

// reportUnread reports why an object cannot be read.
func reportUnread(ctx context.Context, runner unread.Runner, s *v1.StatefulSingleton) report.Outcome {
	next := s.DeepCopy()
	next.Status.ObservedGeneration = s.Generation
	return unreadParts(s).Report(ctx, runner, s, next, &next.Status.Conditions)
}

// Cache says what the manager's cache holds for this kind. Pods are not in it:
// they are watched only in namespaces that have a StatefulSingleton.
func Cache() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		metadataOf("ConfigMap"): {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, v1.ConfigMapWrapper), Transform: slim.Kept{}.Metadata},
		&corev1.Node{}:          {Transform: slim.Node},
		&v1.StatefulSingleton{}: {Transform: slimObject},
	}
}

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// mostPodBytes is how many bytes of JSON the pods of an object may have in all.
const mostPodBytes = 16 << 20

// Setup adds the controller to the manager.
func Setup(mgr ctrl.Manager, o Options) error { return setup(mgr, o, time.Now) }

func setup(mgr ctrl.Manager, o Options, now func() time.Time) error {
	runner := &action.Runner{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Lease: o.Lease}
	live, err := livepods.New(mgr, mostPodBytes)
	if err != nil {
		return err
	}
	r := &Reconciler{
		Cache: mgr.GetCache(), Live: live, Now: now, Runner: runner, Lease: o.Lease,
		Guard:  &Guard{Live: mgr.GetAPIReader(), Options: o, turned: make(chan event.GenericEvent, 1)},
		Events: mgr.GetEventRecorder("statefulsingleton"),
		pods:   newPodWatch(mgr, o.Watched),
	}
	r.pods.find = r.concerned
	if err := mgr.Add(r.Guard); err != nil {
		return fmt.Errorf("add the guard: %w", err)
	}
	if err := mgr.Add(r.pods); err != nil {
		return fmt.Errorf("add the watch of pods: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("statefulsingleton").
		For(&v1.StatefulSingleton{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1.StatefulSingleton{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(comesOrGoes)).
		WatchesMetadata(metadataOf("ConfigMap"), handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1.StatefulSingleton{})).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.onNode), builder.WithPredicates(enqueue.NodeTurned)).
		WatchesRawSource(source.Channel(r.pods.woken, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.Guard.turned, handler.EnqueueRequestsFromMapFunc(r.everyone))).
		WithOptions(enqueue.Workers(32)).
		Complete(r)
}

var comesOrGoes = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// known are the StatefulSingletons of a namespace, or of all, as the cache has them.
// They are the cache's own: no one may change them.
func (r *Reconciler) known(ctx context.Context, namespace string) []v1.StatefulSingleton {
	var all v1.StatefulSingletonList
	if err := r.Cache.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list StatefulSingletons", "namespace", namespace)
	}
	return all.Items
}

// inNamespace lists the StatefulSingletons of a namespace, or of all, that a
// filter lets pass.
func (r *Reconciler) inNamespace(ctx context.Context, namespace string, filter func(*v1.StatefulSingleton) bool) []reconcile.Request {
	all := r.known(ctx, namespace)
	var requests []reconcile.Request
	for i := range all {
		if filter(&all[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
		}
	}
	return requests
}

// everyone is each object: the guard of all has changed.
func (r *Reconciler) everyone(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.inNamespace(ctx, "", func(*v1.StatefulSingleton) bool { return true })
}

// neighbours are those that look at an object which comes or goes: whose selectors
// overlap with its own, and who are served or not any more, since a namespace has a
// limit. All others are left alone.
func (r *Reconciler) neighbours(ctx context.Context, changed client.Object) []reconcile.Request {
	s, ok := changed.(*v1.StatefulSingleton)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	wake := func(o *v1.StatefulSingleton) {
		if o.Name != s.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	known := r.known(ctx, s.Namespace)
	for _, o := range conflicting(s, withinLimit(known)) {
		wake(o)
	}
	if len(known) >= MaxPerNamespace {
		atLimit := byAge(known)[MaxPerNamespace-1:]
		for i := range atLimit[:min(len(atLimit), 2)] {
			wake(&atLimit[i])
		}
	}
	return requests
}

// onNode finds the objects that a Node may concern: where a pod runs that is
// waited for, or will be, and where pods wait.
func (r *Reconciler) onNode(ctx context.Context, n client.Object) []reconcile.Request {
	return r.inNamespace(ctx, "", func(s *v1.StatefulSingleton) bool {
		h := s.Status.Holder
		return h == nil || h.Node == n.GetName() || h.Name != s.Status.ActivePod || s.Status.WaitingCount > 0
	})
}

// concerned finds the objects that a pod belongs to, and the one that it was
// made for even if that is gone.
func (r *Reconciler) concerned(ctx context.Context, pod metav1.Object) []reconcile.Request {
	maker := pod.GetLabels()[v1.LabelSingleton]
	requests := r.inNamespace(ctx, pod.GetNamespace(), func(s *v1.StatefulSingleton) bool {
		switch {
		case crowded(pod): // it may be of any
			return true
		case s.Name == maker: // it is added below
			return false
		}
		return namesHolder(s, pod.GetName()) || selects(s, labelsOf(pod))
	})
	if maker != "" {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: maker}})
	}
	return requests
}

// namesHolder reports whether status.holder of an object names that pod.
func namesHolder(s *v1.StatefulSingleton, pod string) bool {
	return s.Status.Holder != nil && s.Status.Holder.Name == pod
}

// slimObject is a cache transform that keeps what others ask of an object: its spec, who
// holds its grant, and what metrics tell. A selector that is too large is not kept.
func slimObject(obj any) (any, error) {
	s, ok := obj.(*v1.StatefulSingleton)
	if !ok {
		return obj, nil
	}
	small := &v1.StatefulSingleton{TypeMeta: s.TypeMeta, Spec: s.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: s.Name, Namespace: s.Namespace, UID: s.UID, ResourceVersion: s.ResourceVersion, Generation: s.Generation,
		CreationTimestamp: s.CreationTimestamp, DeletionTimestamp: s.DeletionTimestamp, Finalizers: s.Finalizers}}
	small.Status.Holder, small.Status.ActivePod, small.Status.WaitingCount = s.Status.Holder, s.Status.ActivePod, s.Status.WaitingCount
	small.Status.Conditions = slim.Conditions(s.Status.Conditions)
	if !inBounds(small.Spec.Selector) {
		small.Spec.Selector = nil
	}
	return small, nil
}
