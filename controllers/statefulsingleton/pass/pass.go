// Package pass makes the passes of StatefulSingletons.
package pass

import (
	"context"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/large"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// Reconciler starts the pods of StatefulSingletons one after another.
type Reconciler struct {
	Reader   *observe.Reader
	Reporter *status.Reporter
	runner   action.Writer // makes all writes
}

// New returns a Reconciler that makes all writes with the runner.
func New(reader *observe.Reader, runner action.Writer, events events.EventRecorder) *Reconciler {
	return &Reconciler{Reader: reader, runner: runner, Reporter: &status.Reporter{Reader: reader, Runner: runner, Events: events}}
}

// Reconcile reads one StatefulSingleton and its pods, and performs the next step.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, leave := large.Pass(ctx)
	defer leave()
	if err := r.Reader.Pods.Follow(ctx, req.Namespace); err != nil {
		return report.Retry(err).Result()
	}
	w, err := r.Reader.Observe(ctx, req.NamespacedName)
	if err != nil {
		return report.Retry(err).Result()
	}
	if w.Unread() {
		return reportUnread(ctx, r.runner, w.Object).Result()
	}
	f := facts.Derive(w)
	p := rules.Decide(f)
	outcomes := r.runner.Run(ctx, req.NamespacedName, p.Steps)
	return r.Reporter.Report(ctx, req.NamespacedName, f, &p, outcomes).Result()
}

// reportUnread reports in the status why an object cannot be decoded.
func reportUnread(ctx context.Context, runner action.Writer, s *v1.StatefulSingleton) report.Outcome {
	next := s.DeepCopy()
	next.Status.ObservedGeneration = s.Generation
	return spec.UnreadParts(s).Report(ctx, runner, s, next, &next.Status.Conditions)
}
