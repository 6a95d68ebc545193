package statefulsingleton

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/livepods"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/pass"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Options configure the controller.
type Options struct {
	// Namespace is the operator's own namespace.
	Namespace string
	// Watched are the namespaces that the operator manages; empty means all.
	Watched []string
	// Lease reports whether this process is the leader, and when it could observe the
	// cluster.
	Lease *leadership.Lease
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
// Fencing by a Lease. The role is not bound by default. An account can grant only permissions that it has.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update;patch;delete,roleName=fencing-role
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;create;patch;delete,roleName=fencing-role

// Cache returns the cache options of this kind. Pods are not cached there; they are watched
// only in namespaces that have a StatefulSingleton.
func Cache() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		observe.MetadataOf("ConfigMap"): {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, v1.ConfigMapWrapper), Transform: slim.Kept{}.Metadata},
		&corev1.Node{}:                  {Transform: slim.Node},
		&v1.StatefulSingleton{}:         {Transform: slimObject},
	}
}

// maxPodBytes is the max total size in bytes of JSON of an object's pods.
const maxPodBytes = 16 << 20

// Setup adds the controller to the manager.
func Setup(mgr ctrl.Manager, o Options) error { return setup(mgr, o, time.Now) }

// setup is Setup with a clock, which tests set.
func setup(mgr ctrl.Manager, o Options, now func() time.Time) error {
	runner := &action.Runner{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Lease: o.Lease}
	live, err := livepods.New(mgr, maxPodBytes)
	if err != nil {
		return err
	}
	read := &observe.Reader{
		Cache: mgr.GetCache(), Live: live, Now: now, Lease: o.Lease,
		Guard: observe.NewGuard(mgr.GetAPIReader(), o.Namespace, o.Watched),
		Pods:  observe.NewPodWatch(mgr, o.Watched),
	}
	read.Leases = read.Pods.Leases(now)
	to := mapper{read}
	read.Pods.Find = to.requestsForPod
	if err := mgr.Add(read.Guard); err != nil {
		return fmt.Errorf("add the guard: %w", err)
	}
	if err := mgr.Add(read.Pods); err != nil {
		return fmt.Errorf("add the watch of pods: %w", err)
	}
	if err := mgr.Add(read.Leases); err != nil {
		return fmt.Errorf("add the watch of Leases: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("statefulsingleton").
		For(&v1.StatefulSingleton{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1.StatefulSingleton{}, handler.EnqueueRequestsFromMapFunc(to.neighbours), builder.WithPredicates(createdOrDeleted)).
		WatchesMetadata(observe.MetadataOf("ConfigMap"), handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1.StatefulSingleton{})).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(to.onNode), builder.WithPredicates(enqueue.NodeTurned)).
		WatchesRawSource(source.Channel(read.Pods.Requests, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(read.Guard.Turned, handler.EnqueueRequestsFromMapFunc(to.allObjects))).
		WithOptions(enqueue.Workers(32)).
		Complete(pass.New(read, runner, mgr.GetEventRecorder("statefulsingleton")))
}

// createdOrDeleted is a predicate that drops updates.
var createdOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// mapper maps events to requests.
type mapper struct{ reader *observe.Reader }

// inNamespace returns requests for the StatefulSingletons of a namespace, or of all
// namespaces, that pass the filter.
func (m mapper) inNamespace(ctx context.Context, namespace string, filter func(*v1.StatefulSingleton) bool) []reconcile.Request {
	all := m.reader.CachedObjects(ctx, namespace)
	var requests []reconcile.Request
	for i := range all {
		if filter(&all[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
		}
	}
	return requests
}

// allObjects returns a request for every object, when the guard has changed.
func (m mapper) allObjects(ctx context.Context, _ client.Object) []reconcile.Request {
	return m.inNamespace(ctx, "", func(*v1.StatefulSingleton) bool { return true })
}

// neighbours returns requests for the objects that are affected by the creation or deletion
// of another one: objects with an overlapping selector, and objects at the namespace limit,
// which may start or stop being served.
func (m mapper) neighbours(ctx context.Context, changed client.Object) []reconcile.Request {
	s, ok := changed.(*v1.StatefulSingleton)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	add := func(o *v1.StatefulSingleton) {
		if o.Name != s.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	all := m.reader.CachedObjects(ctx, s.Namespace)
	for _, o := range spec.Conflicting(s, spec.WithinLimit(all)) {
		add(o)
	}
	if len(all) >= spec.MaxPerNamespace {
		atLimit := spec.ByAge(all)[spec.MaxPerNamespace-1:]
		for i := range atLimit[:min(len(atLimit), 2)] {
			add(&atLimit[i])
		}
	}
	return requests
}

// onNode returns requests for the objects that a Node may concern: the holder runs there,
// the active pod is not the holder, or pods wait.
func (m mapper) onNode(ctx context.Context, n client.Object) []reconcile.Request {
	return m.inNamespace(ctx, "", func(s *v1.StatefulSingleton) bool {
		h := s.Status.Holder
		return h == nil || h.Node == n.GetName() || h.Name != s.Status.ActivePod || s.Status.WaitingCount > 0
	})
}

// requestsForPod returns requests for the objects that select a pod, and for the object that it
// was created for, even if that object is gone.
func (m mapper) requestsForPod(ctx context.Context, pod metav1.Object) []reconcile.Request {
	createdFor := pod.GetLabels()[v1.LabelSingleton]
	requests := m.inNamespace(ctx, pod.GetNamespace(), func(s *v1.StatefulSingleton) bool {
		switch {
		case observe.LabelsDropped(pod): // any object may select it
			return true
		case s.Name == createdFor: // added below
			return false
		}
		return namesHolder(s, pod.GetName()) || spec.Selects(s, spec.LabelsOf(pod))
	})
	if createdFor != "" {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: createdFor}})
	}
	return requests
}

// namesHolder reports whether status.holder of an object names that pod.
func namesHolder(s *v1.StatefulSingleton, pod string) bool {
	return s.Status.Holder != nil && s.Status.Holder.Name == pod
}

// slimObject is a cache transform that keeps the fields that other objects and metrics
// need: the spec, the holder, and parts of the status. A selector that is too large is
// dropped.
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
	if !spec.InBounds(small.Spec.Selector) {
		small.Spec.Selector = nil
	}
	return small, nil
}
