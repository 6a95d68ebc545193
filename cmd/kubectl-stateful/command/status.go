package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

func (p *Plugin) status() *cobra.Command {
	output := ""
	c := p.object(&cobra.Command{
		Use: "status", Short: "Show the state of an object as a tree",
		Long:    "Show an object with its important conditions, its versions, its members with their roles,\nnodes and claims, and the reasons for waiting. Without a name it shows all objects of the namespace, of\none kind or of all kinds.",
		Example: "  kubectl stateful status\n  kubectl stateful status rss db\n  kubectl stateful status ests/shop --output=yaml",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		report, err := p.report(ctx, s, kind, name)
		if err != nil {
			return err
		}
		if output != "" {
			return p.print(output, report)
		}
		return tree.Write(p.Streams.Out, report, p.color())
	})
	c.Use = "status [KIND [NAME] | KIND/NAME]"
	one := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 || (len(args) == 1 && !strings.Contains(args[0], "/")) {
			return p.statusOfAll(c.Context(), args, output)
		}
		return one(c, args)
	}
	outputFlag(c, &output)
	return c
}

func (p *Plugin) report(ctx context.Context, s site, kind kinds.Kind, name string) (tree.Report, error) {
	snap, err := snapshot.Load(ctx, s, kind, s.Namespace, name)
	if err != nil {
		return tree.Report{}, err
	}
	return tree.Of(snap, p.Now()), nil
}

// statusOfAll shows all objects of the namespace: of the given kind, or of all kinds. Objects that
// cannot be read do not hide the others.
func (p *Plugin) statusOfAll(ctx context.Context, named []string, output string) error {
	wanted := kinds.All
	if len(named) > 0 {
		kind, err := kinds.Parse(named[0])
		if err != nil {
			return err
		}
		wanted = []kinds.Kind{kind}
	}
	s, err := p.Connect()
	if err != nil {
		return err
	}
	reports, unread := []tree.Report{}, 0
	for _, kind := range wanted {
		names, err := namesOf(ctx, s, kind)
		if err != nil {
			p.warn("%s", explain(err))
			unread++
		}
		for _, name := range names {
			report, err := p.report(ctx, s, kind, name)
			if apierrors.IsNotFound(err) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				p.warn("%s", explain(err))
				unread++
				continue
			}
			reports = append(reports, report)
		}
	}
	if err := p.writeReports(s.Namespace, reports, unread, output); err != nil {
		return err
	}
	if unread > 0 {
		return errors.New("some objects cannot be read")
	}
	return nil
}

func (p *Plugin) writeReports(namespace string, reports []tree.Report, unread int, output string) error {
	if output != "" {
		return p.print(output, map[string]any{"items": reports})
	}
	if len(reports) == 0 && unread == 0 {
		p.warn("No resources found in %s namespace.", namespace)
	}
	for i, report := range reports {
		if i > 0 {
			p.say("")
		}
		if err := tree.Write(p.Streams.Out, report, p.color()); err != nil {
			return err
		}
	}
	return nil
}

func outputFlag(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", "", "Output format. One of: (json, yaml).")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func since(now, then time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}
