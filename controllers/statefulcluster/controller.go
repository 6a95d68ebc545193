package statefulcluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/livepods"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// Reconciler reconciles StatefulClusters.
type Reconciler struct {
	reader   *observe.Reader
	reporter *status.Reporter
	// runner performs all writes.
	runner action.Writer
	// tracker tracks writes that the cache does not show yet.
	tracker *consistency.Tracker
}

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

// Reconcile runs one pass for a StatefulCluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.pass().Run(ctx, req.NamespacedName).Result()
}

// considered is the result of consider: the facts that were read, and the plan that was decided.
type considered struct {
	facts *facts.Facts
	plan  rules.Plan
}

// pass returns the steps of a pass of this kind.
func (r *Reconciler) pass() engine.Pass[*v1alpha1.StatefulCluster, considered] {
	return engine.Pass[*v1alpha1.StatefulCluster, considered]{
		Cache: r.reader.Cache, Live: r.reader.Live, Tracker: r.tracker, AsCached: asCached,
		New:    func() *v1alpha1.StatefulCluster { return &v1alpha1.StatefulCluster{} },
		Unread: func(set *v1alpha1.StatefulCluster) bool { return spec.UnreadParts(set).Any() },
		Refuse: func(ctx context.Context, set *v1alpha1.StatefulCluster) report.Outcome {
			return reportUnread(ctx, r.runner, set)
		},
		Decide:  r.consider,
		Recheck: r.wantsLive,
		Size:    func(c considered) (int, any) { return len(c.facts.Members), &c.facts.Set.Spec.Template },
		Act:     r.act,
		Deleted: r.afterDeletion,
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

// reportUnread reports in the status why a set cannot be read.
func reportUnread(ctx context.Context, runner action.Writer, set *v1alpha1.StatefulCluster) report.Outcome {
	next := set.DeepCopy()
	next.Status.ObservedGeneration = set.Generation
	return spec.UnreadParts(set).Report(ctx, runner, set, next, &next.Status.Conditions)
}

// consider reads the state of a set from a view, and decides.
func (r *Reconciler) consider(ctx context.Context, set *v1alpha1.StatefulCluster, from engine.View) (considered, error) {
	w, err := r.reader.Observe(ctx, set, from)
	if err != nil {
		return considered{}, err
	}
	f := facts.Derive(w)
	return considered{f, rules.Decide(f)}, nil
}

// wantsLive reports whether to read the state from the API server, and decide again, before the plan is
// carried out.
func (r *Reconciler) wantsLive(c considered) bool {
	return c.plan.WantsLive() || r.reader.Of(c.facts.Set).WantsLive(c.facts.Set, c.facts.Now)
}

// act carries out the plan, and reports the results.
func (r *Reconciler) act(ctx context.Context, c considered) report.Outcome {
	return r.reporter.Report(ctx, c.facts, &c.plan, r.runner.Run(ctx, client.ObjectKeyFromObject(c.facts.Set), c.plan.Steps))
}

// afterDeletion labels the claims that outlive their StatefulCluster, so that users see why the
// claims exist. The garbage collector deletes the pods.
func (r *Reconciler) afterDeletion(ctx context.Context, key types.NamespacedName) report.Outcome {
	r.tracker.Forget(key)
	var set v1alpha1.StatefulCluster
	if err := r.reader.Live.Get(ctx, key, &set); err == nil {
		return report.Done() // it exists, so its watch event will arrive
	} else if !apierrors.IsNotFound(err) {
		return report.Retry(fmt.Errorf("get the StatefulCluster: %w", err))
	}
	r.reader.Forget(key)
	status.ForgetMetrics(key)
	left, err := r.reader.ReadAbandoned(ctx, key, "")
	if err != nil {
		return report.Retry(fmt.Errorf("list the claims of a deleted StatefulCluster: %w", err))
	}
	for _, o := range r.runner.Run(ctx, key, rules.LabelAbandoned(left)) {
		if client.IgnoreNotFound(o.Err) != nil {
			return report.Retry(o.Err)
		}
	}
	return report.Done()
}

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

// asCached returns the empty object for reading a written object from the cache.
func asCached(obj client.Object) client.Object {
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return observe.ClaimMetadata()
	case *corev1.Pod:
		return &corev1.Pod{}
	case *appsv1.ControllerRevision:
		return &appsv1.ControllerRevision{}
	case *policyv1.PodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{}
	}
	return &v1alpha1.StatefulCluster{}
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
	r := &Reconciler{
		reader: read, runner: runner, tracker: tracker,
		reporter: &status.Reporter{Reader: read, Runner: runner, Events: mgr.GetEventRecorder("statefulcluster")},
	}
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
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.onNode), builder.WithPredicates(enqueue.NodeTurned)).
		WithOptions(enqueue.Workers(64)).
		Complete(r)
}

// onNode returns requests for the sets that have pods on a Node.
func (r *Reconciler) onNode(ctx context.Context, n client.Object) []reconcile.Request {
	var pods corev1.PodList
	if err := r.reader.Cache.List(ctx, &pods, client.MatchingFields{observe.IndexNode: n.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the pods of a node", "node", n.GetName())
		return nil
	}
	seen := map[reconcile.Request]bool{}
	var requests []reconcile.Request
	for i := range pods.Items {
		req := reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: pods.Items[i].Namespace, Name: pods.Items[i].Labels[v1alpha1.LabelCluster]}}
		if !seen[req] {
			seen[req] = true
			requests = append(requests, req)
		}
	}
	return requests
}
