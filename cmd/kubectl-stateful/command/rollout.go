package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/rollout"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

var errTimeout = errors.New("timed out waiting for the condition")

func (p *Plugin) rollout() *cobra.Command {
	c := &cobra.Command{
		Use: "rollout", Short: "Manage the rollout of an object",
		Long: "Manage the rollout of an object with the means of its kind. kubectl rollout does not support these kinds.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.rolloutStatus(), p.restart(), p.undo(), p.pause("pause", true), p.pause("resume", false))
	return c
}

func (p *Plugin) rolloutStatus() *cobra.Command {
	watch, timeout := true, time.Duration(0)
	c := p.object(&cobra.Command{
		Use: "status", Short: "Show the status of a rollout until it ends",
		Long:    "Show the status of a rollout until it ends. The exit code is 0 when it succeeded, and 1 when it\nrequires manual intervention or timed out.",
		Example: "  kubectl stateful rollout status ests/shop --timeout=10m",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		return p.follow(ctx, s, kind, name, watch, timeout)
	})
	c.Flags().BoolVarP(&watch, "watch", "w", watch, "Watch the status of the rollout until it's done.")
	c.Flags().DurationVar(&timeout, "timeout", timeout, "The length of time to wait before ending watch, zero means never. Any other values should contain a corresponding time unit (e.g. 1s, 2m, 3h).")
	return c
}

func (p *Plugin) follow(ctx context.Context, s site, kind kinds.Kind, name string, watch bool, timeout time.Duration) error {
	said, warned, first := "", "", types.UID("")
	return p.poll(ctx, timeout, watch, func(ctx context.Context) (bool, error) {
		snap, err := snapshot.Load(ctx, s, kind, s.Namespace, name)
		if err != nil {
			return false, err
		}
		if first == "" {
			first = snap.Object.GetUID()
		}
		if snap.Object.GetUID() != first {
			return true, fmt.Errorf("%s %q was deleted and recreated", kind.Singular(), name)
		}
		progress := rollout.Status(snap)
		if progress.Failed != nil {
			return true, progress.Failed
		}
		if progress.Trouble != "" && progress.Trouble != warned {
			warned = progress.Trouble
			p.warn("%s", tree.Printable(warned))
		}
		if progress.Line != said {
			said = progress.Line
			p.say("%s", tree.Printable(said))
		}
		return progress.Done, nil
	})
}

// poll repeats look until it is done, or calls it once if it does not watch. Errors of an
// overloaded or unreachable API server are retried.
func (p *Plugin) poll(ctx context.Context, timeout time.Duration, watch bool, look func(context.Context) (bool, error)) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
	}
	warned := ""
	for {
		done, err := look(ctx)
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if done || !watch || (err != nil && !passes(err)) {
			return err
		}
		if err != nil && err.Error() != warned {
			warned = err.Error()
			p.warn("%s (retrying)", explain(err))
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-time.After(p.Interval):
		}
	}
}

// ended returns why a wait was interrupted.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return cause
	}
	return errors.New("interrupted")
}

// passes reports whether an error is a temporary error of the API server, and not about the object.
func passes(err error) bool {
	if meta.IsNoMatchError(err) {
		return false
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true // it was unreachable
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}

func (p *Plugin) restart() *cobra.Command {
	yes := false
	c := p.object(&cobra.Command{
		Use: "restart", Short: "Recreate the pods of an object in the order of its kind",
		Long: "Recreate the pods of an object in the order of its kind, by an annotation in the pod template:\n" +
			"a StatefulCluster with updateStrategy.inPlace Never member by member, a ReplicatedStatefulSet secondaries\n" +
			"first, an ExtendedStatefulSet as an upgrade to a new version, a StatefulSingleton through the owner of its pods.",
		Example: "  kubectl stateful rollout restart rss/db",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		return p.change(ctx, s, kind, name, yes, func(snap *snapshot.Snapshot) ([]rollout.Change, error) {
			return rollout.Restart(snap, p.Now())
		})
	})
	yesFlag(c, &yes)
	return c
}

func (p *Plugin) undo() *cobra.Command {
	yes, revision := false, int64(0)
	c := p.object(&cobra.Command{
		Use: "undo", Short: "Roll back to an earlier template",
		Long:    "Roll back to the template before the current one. A StatefulCluster keeps revisions. For other kinds the\ncommand prints what to do instead.",
		Example: "  kubectl stateful rollout undo stc/web --to-revision=3",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		return p.change(ctx, s, kind, name, yes, func(snap *snapshot.Snapshot) ([]rollout.Change, error) {
			return rollout.Undo(snap, revision)
		})
	})
	yesFlag(c, &yes)
	c.Flags().Int64Var(&revision, "to-revision", revision, "The revision to rollback to. Default to 0 (last revision).")
	return c
}

func (p *Plugin) pause(verb string, paused bool) *cobra.Command {
	short := "Resume the operator for an object"
	if paused {
		short = "Prevent the operator from running commands and from changing the number of pods"
	}
	return p.object(&cobra.Command{
		Use: verb, Short: short,
		Long:    short + ", with spec.paused of a ReplicatedStatefulSet.\nFor other kinds the command prints what to do instead.",
		Example: "  kubectl stateful rollout " + verb + " rss/db",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		return p.change(ctx, s, kind, name, true, func(snap *snapshot.Snapshot) ([]rollout.Change, error) {
			return rollout.Pause(snap, paused)
		})
	})
}

func yesFlag(c *cobra.Command, yes *bool) {
	c.Flags().BoolVarP(yes, "yes", "y", false, "Continue although this cannot be undone.")
}

// change writes the changes that decide returns for a snapshot. Each write conflicts if the object
// was changed since it was read, because the decision may be wrong then.
func (p *Plugin) change(ctx context.Context, s site, kind kinds.Kind, name string, yes bool, decide func(*snapshot.Snapshot) ([]rollout.Change, error)) error {
	snap, err := snapshot.Load(ctx, s, kind, s.Namespace, name)
	if err != nil {
		return err
	}
	changes, err := decide(snap)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if change.Dangerous != "" && !yes {
			return fmt.Errorf("%s; to continue anyway, add --yes", change.Dangerous)
		}
	}
	for _, change := range changes {
		if err := s.patch(ctx, change.From, change.To); err != nil {
			return err
		}
		p.say("%s %s", s.named(change.From), change.What)
	}
	return nil
}

// patch writes the difference of two states of an object, unless the object was changed since it
// was read.
func (s site) patch(ctx context.Context, from, to client.Object) error {
	return s.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}), owner)
}

// named returns the name of an object as kubectl prints it.
func (s site) named(object client.Object) string {
	gvk, err := apiutil.GVKForObject(object, s.Scheme())
	if err != nil {
		return object.GetName()
	}
	kind := kinds.Kind{GroupVersionKind: gvk}
	return fmt.Sprintf("%s.%s/%s", kind.Singular(), gvk.Group, object.GetName())
}
