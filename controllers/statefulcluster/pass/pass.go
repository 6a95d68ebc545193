// Package pass reconciles StatefulClusters: it reads, decides and acts, without a manager.
package pass

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// Reconciler reconciles StatefulClusters.
type Reconciler struct {
	// Decided, if set, is called with the facts of each decision before it is carried out. Simulations use it.
	Decided func(*facts.Facts)

	reader   *observe.Reader
	reporter *status.Reporter
	// runner performs all writes.
	runner action.Writer
	// tracker tracks writes that the cache does not show yet.
	tracker *consistency.Tracker
}

// New returns a Reconciler that reads and remembers with reader, and writes with runner. If runner records
// its writes, it does so in tracker.
func New(reader *observe.Reader, runner action.Writer, tracker *consistency.Tracker, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{
		reader: reader, runner: runner, tracker: tracker,
		reporter: &status.Reporter{Reader: reader, Runner: runner, Events: recorder},
	}
}

// Reconcile runs one pass for a StatefulCluster.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
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
	if r.Decided != nil {
		r.Decided(c.facts)
	}
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
