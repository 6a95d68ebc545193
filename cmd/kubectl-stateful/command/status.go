package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// evidence is the state of an object with its decisions.
type evidence struct {
	Kind       string              `json:"kind"`
	Namespace  string              `json:"namespace"`
	Name       string              `json:"name"`
	Conditions []metav1.Condition  `json:"conditions"`
	Decisions  []snapshot.Decision `json:"decisions"`
}

func (p *Plugin) why() *cobra.Command {
	output, last := "", 20
	c := p.object(&cobra.Command{
		Use: "why", Short: "Show recent decisions of the operator and the conditions of an object",
		Long: "Show the latest events that the operator wrote about an object, the newest last, and the conditions\n" +
			"with their reasons. The API server keeps events for an hour by default.",
		Example: "  kubectl stateful why rss/db",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		found, err := evidenceOf(ctx, s, kind, name, last)
		if err != nil {
			return err
		}
		if output != "" {
			return p.print(output, found)
		}
		return p.writeEvidence(found)
	})
	outputFlag(c, &output)
	c.Flags().IntVar(&last, "last", last, "The number of decisions to show. 0 shows all.")
	return c
}

func evidenceOf(ctx context.Context, s site, kind kinds.Kind, name string, last int) (evidence, error) {
	object, err := snapshot.Get(ctx, s, kind, s.Namespace, name)
	if err != nil {
		return evidence{}, err
	}
	all, err := snapshot.Decisions(ctx, s, object)
	if err != nil {
		return evidence{}, err
	}
	decisions := []snapshot.Decision{}
	for _, d := range all {
		if d.By == kind.Singular() { // events of other sources are not trusted
			decisions = append(decisions, d)
		}
	}
	if last > 0 && len(decisions) > last {
		decisions = decisions[len(decisions)-last:]
	}
	return evidence{Kind: kind.Kind, Namespace: s.Namespace, Name: name, Conditions: kinds.StateOf(object).Conditions, Decisions: decisions}, nil
}

func (p *Plugin) writeEvidence(e evidence) error {
	w := tabwriter.NewWriter(p.Streams.Out, 0, 8, 2, ' ', 0)
	now := p.Now()
	fmt.Fprintf(w, "%s %s/%s\n\n", e.Kind, e.Namespace, e.Name)
	fmt.Fprintln(w, "Decisions, the newest last:")
	for _, d := range e.Decisions {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", age(now, d), tree.Printable(d.Type), tree.Printable(d.Reason), tree.Printable(strings.TrimSpace(d.Message)))
	}
	if len(e.Decisions) == 0 {
		fmt.Fprintln(w, "  no events; the API server keeps events for an hour by default")
	}
	fmt.Fprintln(w, "\nConditions:")
	for _, c := range e.Conditions {
		fmt.Fprintf(w, "  for %s\t%s=%s\t%s\t%s\n", since(now, c.LastTransitionTime.Time), tree.Printable(c.Type), tree.Printable(string(c.Status)), tree.Printable(c.Reason), tree.Printable(c.Message))
	}
	if len(e.Conditions) == 0 {
		fmt.Fprintln(w, "  the object was not reconciled yet; check that the operator runs and watches this namespace")
	}
	return w.Flush()
}

func since(now, then time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// age formats the time since a decision like kubectl describe.
func age(now time.Time, d snapshot.Decision) string {
	if d.Count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", since(now, d.Last), d.Count, since(now, d.First))
	}
	return since(now, d.Last)
}
