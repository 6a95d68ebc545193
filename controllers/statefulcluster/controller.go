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
)

// Reconciler reconciles StatefulClusters.
type Reconciler struct {
	reader   *reader
	reporter *reporter
	// runner performs all writes.
	runner *action.Runner
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

// considered is the result of a decision: the facts and the plan.
type considered struct {
	facts *facts
	plan  plan
}

func (r *Reconciler) pass() engine.Pass[*v1alpha1.StatefulCluster, considered] {
	return engine.Pass[*v1alpha1.StatefulCluster, considered]{
		Cache: r.reader.cache, Live: r.reader.live, Tracker: r.tracker, AsCached: asCached,
		New:    func() *v1alpha1.StatefulCluster { return &v1alpha1.StatefulCluster{} },
		Unread: func(set *v1alpha1.StatefulCluster) bool { return unreadParts(set).Any() },
		Refuse: func(ctx context.Context, set *v1alpha1.StatefulCluster) report.Outcome {
			return reportUnread(ctx, r.runner, set)
		},
		Decide:  r.consider,
		Recheck: r.wantsLive,
		Size:    func(c considered) (int, any) { return len(c.facts.members), &c.facts.set.Spec.Template },
		Act:     r.act,
		Deleted: r.afterDeletion,
	}
}

// unreadParts returns why the operator could not read parts of a set.
func unreadParts(set *v1alpha1.StatefulCluster) unread.Parts {
	return unread.Parts{Spec: set.Spec.Problem, Status: set.Status.Problem}
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
func reportUnread(ctx context.Context, runner unread.Runner, set *v1alpha1.StatefulCluster) report.Outcome {
	next := set.DeepCopy()
	next.Status.ObservedGeneration = set.Generation
	return unreadParts(set).Report(ctx, runner, set, next, &next.Status.Conditions)
}

func (r *Reconciler) consider(ctx context.Context, set *v1alpha1.StatefulCluster, from engine.View) (considered, error) {
	w, err := r.reader.observe(ctx, set, from)
	if err != nil {
		return considered{}, err
	}
	f := derive(w)
	return considered{f, decide(f)}, nil
}

// wantsLive reports whether to decide again on a live read.
func (r *Reconciler) wantsLive(c considered) bool {
	return c.plan.wantsLive() || r.reader.of(c.facts.set).wantsLive(c.facts.set, c.facts.now)
}

func (r *Reconciler) act(ctx context.Context, c considered) report.Outcome {
	return r.reporter.report(ctx, c.facts, &c.plan, r.runner.Run(ctx, client.ObjectKeyFromObject(c.facts.set), c.plan.Steps))
}

// afterDeletion labels the claims that outlive their StatefulCluster, so that users see why the
// claims exist. The garbage collector deletes the pods.
func (r *Reconciler) afterDeletion(ctx context.Context, key types.NamespacedName) report.Outcome {
	r.tracker.Forget(key)
	var set v1alpha1.StatefulCluster
	if err := r.reader.live.Get(ctx, key, &set); err == nil {
		return report.Done() // it exists, so its watch event will arrive
	} else if !apierrors.IsNotFound(err) {
		return report.Retry(fmt.Errorf("get the StatefulCluster: %w", err))
	}
	r.reader.forget(key)
	forgetMetrics(key)
	left, err := r.reader.readAbandoned(ctx, key, "")
	if err != nil {
		return report.Retry(fmt.Errorf("list the claims of a deleted StatefulCluster: %w", err))
	}
	for _, o := range r.runner.Run(ctx, key, labelAbandoned(left)) {
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
			Labels: []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember, labelRevision},
			Annotations: []string{v1alpha1.AnnotationDeleteFirst, v1alpha1.AnnotationReplaces, v1alpha1.AnnotationReplacements,
				v1alpha1.AnnotationUpdated, v1alpha1.AnnotationInPlace, v1alpha1.AnnotationRestarts},
			Containers: func(pod *corev1.Pod) bool {
				return !podstate.Ready(pod) || pod.Annotations[v1alpha1.AnnotationInPlace] != "" || totalRestarts(pod) > 0
			},
			Images: func(pod *corev1.Pod) bool { return pod.Annotations[v1alpha1.AnnotationInPlace] != "" },
			Causes: true,
		}.Pod},
		claimMetadata(): {Label: ours, Transform: slim.Kept{
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
		return claimMetadata()
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
	if err := indexFields(mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index the cache: %w", err)
	}
	pods, err := livepods.New(mgr, bounds.PodBytes)
	if err != nil {
		return err
	}
	tracker := &consistency.Tracker{}
	read := &reader{cache: mgr.GetCache(), live: mgr.GetAPIReader(), pods: pods, now: time.Now, lease: lease}
	runner := &action.Runner{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: tracker, Lease: lease}
	r := &Reconciler{
		reader: read, runner: runner, tracker: tracker,
		reporter: &reporter{reader: read, runner: runner, events: mgr.GetEventRecorder("statefulcluster")},
	}
	// The handler of pods reads sets, also while this process waits for the lease.
	if _, err := mgr.GetCache().GetInformer(context.Background(), &v1alpha1.StatefulCluster{}); err != nil {
		return fmt.Errorf("watch StatefulClusters: %w", err)
	}
	informer, err := mgr.GetCache().GetInformer(context.Background(), &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if _, err := informer.AddEventHandler(read.podHandler()); err != nil {
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
	if err := r.reader.cache.List(ctx, &pods, client.MatchingFields{indexNode: n.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
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

func indexFields(indexer client.FieldIndexer) error {
	byCluster := func(obj client.Object) []string {
		if uid := obj.GetLabels()[v1alpha1.LabelClusterUID]; uid != "" {
			return []string{uid}
		}
		return nil
	}
	ctx := context.Background()
	for _, obj := range []client.Object{&corev1.Pod{}, claimMetadata(), &appsv1.ControllerRevision{}} {
		if err := indexer.IndexField(ctx, obj, indexOwner, byCluster); err != nil {
			return err
		}
	}
	return indexer.IndexField(ctx, &corev1.Pod{}, indexNode, func(obj client.Object) []string {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}
		}
		return nil
	})
}
