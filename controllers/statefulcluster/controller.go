package statefulcluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/livepods"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/pass"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// +kubebuilder:rbac:groups=enge.me,resources=statefulclusters,verbs=get;list;watch,roleName=statefulcluster-role
// +kubebuilder:rbac:groups=enge.me,resources=statefulclusters/status,verbs=patch,roleName=statefulcluster-role
// +kubebuilder:rbac:groups=enge.me,resources=statefulclusters/finalizers,verbs=update,roleName=statefulcluster-role
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete,roleName=statefulcluster-role
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch,roleName=statefulcluster-role
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete,roleName=statefulcluster-role
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch,roleName=cluster-scoped-role
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete,roleName=statefulcluster-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch,roleName=statefulcluster-role
// +kubebuilder:rbac:groups="",resources=events,verbs=list,roleName=statefulcluster-role
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,roleName=statefulcluster-role

// Cache returns the cache configuration of this kind: objects with the operator's label, pods and
// Nodes reduced to the fields that decisions use, and claims as metadata only. Pods that are not
// members use no memory.
func Cache() map[client.Object]cache.ByObject {
	exists, err := labels.NewRequirement(v1alpha1.LabelCluster, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	ours := labels.NewSelector().Add(*exists)
	return map[client.Object]cache.ByObject{
		&v1alpha1.StatefulCluster{}: {Transform: slimSet},
		&corev1.Pod{}: {Label: ours, Transform: slim.Kept{
			Labels: []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember, spec.LabelRevision},
			Annotations: []string{v1alpha1.AnnotationDeleteFirst, v1alpha1.AnnotationReplaces, v1alpha1.AnnotationReplacements,
				v1alpha1.AnnotationUpdated, v1alpha1.AnnotationInPlace, v1alpha1.AnnotationRestarts},
			Containers: func(pod *corev1.Pod) bool {
				return !podstate.Ready(pod) || pod.Annotations[v1alpha1.AnnotationInPlace] != "" || facts.TotalRestarts(pod) > 0
			},
			Images: func(pod *corev1.Pod) bool { return pod.Annotations[v1alpha1.AnnotationInPlace] != "" },
			Causes: true,
		}.Pod},
		observe.ClaimMetadata(): {Label: ours, Transform: slim.Kept{
			Labels:      []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember, v1alpha1.LabelRetained},
			Annotations: []string{v1alpha1.AnnotationRetention, v1alpha1.AnnotationAdopt},
		}.Metadata},
		&appsv1.ControllerRevision{}:    {Label: ours, Transform: slim.Child},
		&policyv1.PodDisruptionBudget{}: {Label: ours, Transform: slim.Child},
		&corev1.Node{}:                  {Transform: slim.Node},
	}
}

// slimSet is a cache transform that drops the spec of a set that is too large to be cached.
func slimSet(obj any) (any, error) {
	set, ok := obj.(*v1alpha1.StatefulCluster)
	if !ok {
		return obj, nil
	}
	if problem := unread.Bound(&set.ObjectMeta, &set.Spec); problem != "" {
		set.Spec = v1alpha1.StatefulClusterSpec{Problem: problem}
	}
	return set, nil
}

// Setup adds the controller to the manager. The controller writes only while it holds the lease.
func Setup(mgr ctrl.Manager, lease *leadership.Lease) error {
	if err := observe.IndexFields(mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index the cache: %w", err)
	}
	pods, err := livepods.New(mgr, bounds.PodBytes)
	if err != nil {
		return err
	}
	tracker := &consistency.Tracker{}
	read := &observe.Reader{Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Pods: pods, Now: time.Now, Lease: lease}
	runner := &action.Runner{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: tracker, Lease: lease}
	// The handler of pods reads sets, also while this process waits for the lease.
	if _, err := mgr.GetCache().GetInformer(context.Background(), &v1alpha1.StatefulCluster{}); err != nil {
		return fmt.Errorf("watch StatefulClusters: %w", err)
	}
	informer, err := mgr.GetCache().GetInformer(context.Background(), &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if _, err := informer.AddEventHandler(read.PodHandler()); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	owned := enqueue.Children(enqueue.Controller("StatefulCluster"), tracker.Gone)
	members := enqueue.Children(enqueue.ControllerOrLabel("StatefulCluster", v1alpha1.LabelCluster), tracker.Gone)
	return ctrl.NewControllerManagedBy(mgr).
		Named("statefulcluster").
		For(&v1alpha1.StatefulCluster{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Pod{}, members).
		Watches(&appsv1.ControllerRevision{}, owned).
		Watches(&policyv1.PodDisruptionBudget{}, owned).
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, enqueue.Children(enqueue.Label(v1alpha1.LabelCluster), tracker.Gone)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(requestsFrom(mgr.GetCache())), builder.WithPredicates(enqueue.NodeTurned)).
		WithOptions(enqueue.Workers(64)).
		Complete(pass.New(read, runner, tracker, mgr.GetEventRecorder("statefulcluster")))
}

// requestsFrom returns a function that returns requests for the sets that have pods on a Node.
func requestsFrom(pods client.Reader) handler.MapFunc {
	return func(ctx context.Context, n client.Object) []reconcile.Request {
		var list corev1.PodList
		if err := pods.List(ctx, &list, client.MatchingFields{observe.IndexNode: n.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the pods of a node", "node", n.GetName())
			return nil
		}
		seen := map[reconcile.Request]bool{}
		var requests []reconcile.Request
		for i := range list.Items {
			req := reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: list.Items[i].Namespace, Name: list.Items[i].Labels[v1alpha1.LabelCluster]}}
			if !seen[req] {
				seen[req] = true
				requests = append(requests, req)
			}
		}
		return requests
	}
}
