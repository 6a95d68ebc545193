// Package pass runs a pass for a ReplicatedStatefulSet: it reads its world, decides, acts, and reports the result.
package pass

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// Reconciler reconciles ReplicatedStatefulSets.
type Reconciler struct {
	// reader reads the state of a set.
	reader *observe.Reader
	// runner does all writes.
	runner action.Writer
	// tracker tracks the writes that the cache does not show yet.
	tracker *consistency.Tracker
	// reporter reports the result of a pass.
	reporter *status.Reporter

	// DecidesLive makes all passes decide only on live objects. It is for simulations, whose cache is never stale: a
	// decision on the cache would be the same.
	DecidesLive bool
}

// New returns a Reconciler whose writes are made by the runner.
func New(reader *observe.Reader, runner action.Writer, tracker *consistency.Tracker, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{reader: reader, runner: runner, tracker: tracker, reporter: &status.Reporter{Reader: reader, Runner: runner, Events: recorder}}
}

// Reconcile runs one pass for a ReplicatedStatefulSet.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	began := r.reader.Now()
	defer func() { status.PassSeconds.Observe(r.reader.Now().Sub(began).Seconds()) }()
	return r.pass().Run(ctx, req.NamespacedName).Result()
}

// pass returns the steps of a pass of this kind.
func (r *Reconciler) pass() engine.Pass[*v1alpha1.ReplicatedStatefulSet, *rules.Plan] {
	return engine.Pass[*v1alpha1.ReplicatedStatefulSet, *rules.Plan]{
		Cache: r.reader.Cache, Live: r.reader.Live, Tracker: r.tracker, AsCached: asCached,
		New:    func() *v1alpha1.ReplicatedStatefulSet { return &v1alpha1.ReplicatedStatefulSet{} },
		Unread: func(set *v1alpha1.ReplicatedStatefulSet) bool { return spec.UnreadParts(set).Any() },
		Refuse: func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) report.Outcome {
			return reportUnread(ctx, r.runner, set)
		},
		Decide: r.consider,
		// A plan that only sends queries needs no live read, unless the decision depends on data
		// that the cache does not have: LooksLive, and whether the namespace of a deleted object is
		// being deleted too, which no watch event announces.
		Recheck: func(p *rules.Plan) bool {
			return !r.DecidesLive && (!p.AsksOnly() || p.LooksLive || p.On.Deleting())
		},
		Size:    func(p *rules.Plan) (int, any) { return len(p.On.Members), &p.On.Set.Spec.Pod },
		Act:     r.act,
		Deleted: r.afterDeletion,
	}
}

// reportUnread reports why a set cannot be read.
func reportUnread(ctx context.Context, runner action.Writer, set *v1alpha1.ReplicatedStatefulSet) report.Outcome {
	next := set.DeepCopy()
	next.Status.ObservedGeneration = set.Generation
	return spec.UnreadParts(set).Report(ctx, runner, set, next, &next.Status.Conditions)
}

// consider reads the world of a set and decides.
func (r *Reconciler) consider(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, from engine.View) (*rules.Plan, error) {
	if r.DecidesLive {
		from = engine.View{Reader: r.reader.Live, Live: true}
	}
	w, err := r.reader.Observe(ctx, set, from)
	if err != nil {
		return nil, err
	}
	p := rules.Decide(w)
	return &p, nil
}

// act makes the writes and sends the commands of a plan, and reports the result.
func (r *Reconciler) act(ctx context.Context, p *rules.Plan) report.Outcome {
	outcomes := r.runner.Run(ctx, client.ObjectKeyFromObject(p.On.Set), p.Steps)
	r.reader.KeepBoard(p.On.World)
	return r.reporter.Report(ctx, p, outcomes)
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
	if r.reader.Forget(ctx, key) {
		status.DeletedTotal.Inc()
	}
	status.ForgetMetrics(key)
	var pods corev1.PodList
	if err := r.reader.Live.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels(spec.OwnLabels(set))); err != nil {
		return report.Retry(fmt.Errorf("list pods: %w", err))
	}
	var chains action.Step
	for i := range pods.Items {
		m := &facts.Member{Pod: &pods.Items[i]}
		if _, ours := spec.OrdinalOf(set, m.Name()); ours && m.Protected() {
			chains = append(chains, action.Chain{rules.Unprotect(m)})
		}
	}
	for _, o := range r.runner.Run(ctx, key, action.Steps{chains}) {
		if o.Err != nil && !apierrors.IsNotFound(o.Err) {
			return report.Retry(o.Err)
		}
	}
	return report.Done()
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
