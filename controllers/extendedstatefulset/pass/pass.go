// Package pass reconciles ExtendedStatefulSets. It does not depend on a manager, so that a simulation can run it.
package pass

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

// Reconciler reconciles ExtendedStatefulSets.
type Reconciler struct {
	reader *observe.Reader
	// runner is the only writer.
	runner action.Writer
	// tracker tracks writes that the cache does not show yet.
	tracker  *consistency.Tracker
	reporter *status.Reporter
}

// New returns a Reconciler that makes all writes with the given runner.
func New(reader *observe.Reader, runner action.Writer, tracker *consistency.Tracker, events events.EventRecorder) *Reconciler {
	return &Reconciler{reader: reader, runner: runner, tracker: tracker, reporter: &status.Reporter{Reader: reader, Runner: runner, Events: events}}
}

// Reconcile observes one ExtendedStatefulSet and takes the next steps.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.pass().Run(ctx, req.NamespacedName).Result()
}

// decision has the facts and the plan of a pass.
type decision struct {
	facts *facts.Facts
	plan  rules.Plan
}

// pass returns the steps of a pass: consider reads and decides, act writes and reports.
func (r *Reconciler) pass() engine.Pass[*v1alpha1.ExtendedStatefulSet, decision] {
	return engine.Pass[*v1alpha1.ExtendedStatefulSet, decision]{
		Cache: r.reader.Cache, Live: r.reader.Live, Tracker: r.tracker, AsCached: asCached,
		New:    func() *v1alpha1.ExtendedStatefulSet { return &v1alpha1.ExtendedStatefulSet{} },
		Unread: func(set *v1alpha1.ExtendedStatefulSet) bool { return spec.UnreadParts(set).Any() },
		Refuse: func(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) report.Outcome {
			return reportUnread(ctx, r.runner, set)
		},
		Decide:  r.consider,
		Recheck: func(d decision) bool { return d.plan.Changes() || d.facts.Unsure() }, // the cache may lack a StatefulSet
		Size:    func(d decision) (int, any) { return len(d.facts.Pods), &d.facts.Set.Spec.Template.Spec.Template },
		Act:     r.act,
		Deleted: r.forget,
	}
}

// reportUnread reports in the status why a set cannot be read.
func reportUnread(ctx context.Context, runner action.Writer, set *v1alpha1.ExtendedStatefulSet) report.Outcome {
	next := set.DeepCopy()
	next.Status.ObservedGeneration = set.Generation
	return spec.UnreadParts(set).Report(ctx, runner, set, next, &next.Status.Conditions)
}

// consider reads the world, and decides on it.
func (r *Reconciler) consider(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, from engine.View) (decision, error) {
	w, err := r.reader.Observe(ctx, set, from)
	if err != nil {
		return decision{}, err
	}
	f := record.Derive(w)
	return decision{f, rules.Decide(f)}, nil
}

// act carries out the plan, and reports the results.
func (r *Reconciler) act(ctx context.Context, d decision) report.Outcome {
	outcomes := r.runner.Run(ctx, client.ObjectKeyFromObject(d.facts.Set), d.plan.Steps)
	r.reader.KeepBoard(d.facts.World)
	return r.reporter.Report(ctx, d.facts, &d.plan, outcomes)
}

// forget drops the state that is kept for a deleted object. The garbage collector deletes its children;
// its claims are kept for the user.
func (r *Reconciler) forget(ctx context.Context, key types.NamespacedName) report.Outcome {
	r.tracker.Forget(key)
	r.reader.Forget(ctx, key)
	status.ForgetMetrics(key)
	return report.Done()
}

// asCached returns an empty object to read a written object from the cache.
func asCached(obj client.Object) client.Object {
	if o, isPartial := obj.(*metav1.PartialObjectMetadata); isPartial {
		return configuration.Metadata(o.Kind)
	}
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
}
