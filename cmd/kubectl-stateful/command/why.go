package command

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

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
		Long: "Show the latest decisions of the operator about an object, the newest last, and the conditions with\n" +
			"their reasons. The status has the last 20 as of its last change, with the beginning of each message. Events have the\n" +
			"rest of the message; the API server keeps them for an hour by default.",
		Example: "  kubectl stateful why rss/db",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		found, err := p.evidenceOf(ctx, s, kind, name, last)
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

func (p *Plugin) evidenceOf(ctx context.Context, s site, kind kinds.Kind, name string, last int) (evidence, error) {
	object, err := snapshot.Get(ctx, s, kind, s.Namespace, name)
	if err != nil {
		return evidence{}, err
	}
	all, err := snapshot.Decisions(ctx, s, object)
	if apierrors.IsForbidden(err) {
		p.warn("only decisions in the status are shown: %v", err)
	} else if err != nil {
		return evidence{}, err
	}
	decisions := []snapshot.Decision{}
	for _, d := range all {
		if d.By == kind.Singular() { // events of other sources are not trusted
			decisions = append(decisions, d)
		}
	}
	decisions = snapshot.WithRecorded(decisions, object)
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
		fmt.Fprintln(w, "  none")
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

// age formats the time since a decision like kubectl describe.
func age(now time.Time, d snapshot.Decision) string {
	if d.Count > 1 && d.First.IsZero() {
		return fmt.Sprintf("%s (x%d)", since(now, d.Last), d.Count)
	}
	if d.Count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", since(now, d.Last), d.Count, since(now, d.First))
	}
	return since(now, d.Last)
}
