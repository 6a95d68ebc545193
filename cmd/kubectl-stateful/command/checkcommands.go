package command

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/checkcommands"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/manifests"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

// exitViolated is the exit code of check-commands if a rule is violated. For errors it is exitError.
const exitViolated = 1

// checkCommands returns the command that checks the commands of a ReplicatedStatefulSet.
func (p *Plugin) checkCommands() *cobra.Command {
	var files resource.FilenameOptions
	o := checkcommands.Checker{Out: printable{p.Streams.Out}, Timeout: 5 * time.Minute, Interval: p.Interval}
	c := &cobra.Command{
		Use: "check-commands -f FILENAME", Short: "Check the commands of a ReplicatedStatefulSet",
		Long: "Check the commands of a ReplicatedStatefulSet, without the operator. The command creates a namespace with the objects\n" +
			"of the manifest and the pods of the set, runs the commands as the operator does, and reports which rules they violate.\n" +
			"It deletes the namespace at the end. Objects of the manifest that are not namespaced are not created.\n\n" +
			"Exit codes: 0 if no violation was found, 1 if a rule is violated, and above 1 for an error.",
		Example: "  kubectl stateful check-commands -f orders.yaml\n  kustomize build . | kubectl stateful check-commands -f -",
		Args:    func(c *cobra.Command, args []string) error { return asError(cobra.NoArgs(c, args)) },
		RunE: func(c *cobra.Command, _ []string) error {
			broken, err := p.check(c.Context(), files, o)
			if err == nil && broken > 0 {
				return &exitCode{code: exitViolated}
			}
			return asError(err)
		},
		ValidArgsFunction: cobra.NoFileCompletions, DisableFlagsInUseLine: true,
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return asError(err) })
	c.Flags().StringSliceVarP(&files.Filenames, "filename", "f", nil, "Files or folders with the ReplicatedStatefulSet and the objects that its pods need; - is the standard input.")
	c.Flags().StringVarP(&files.Kustomize, "kustomize", "k", "", "A kustomization folder.")
	c.Flags().BoolVarP(&files.Recursive, "recursive", "R", false, "Process the folders of -f recursively.")
	c.Flags().Int32Var(&o.Members, "replicas", 0, "The number of pods. Default: that of the set, at most 3.")
	c.Flags().DurationVar(&o.Timeout, "timeout", o.Timeout, "The length of time to wait for the pods to start.")
	c.Flags().BoolVar(&o.Keep, "keep", false, "Keep the namespace.")
	return c
}

// check reads the manifest, connects to the cluster, and returns the number of violated rules.
func (p *Plugin) check(ctx context.Context, files resource.FilenameOptions, o checkcommands.Checker) (broken int, err error) {
	objects, err := manifests.Read(files, p.Streams.In, "")
	if err != nil {
		return 0, err
	}
	manifest, err := checkcommands.Decode(objects)
	if err != nil {
		return 0, err
	}
	s, err := p.Connect()
	if err != nil {
		return 0, err
	}
	o.Client, o.Run = s.Client, s.Exec
	return o.Check(ctx, manifest)
}

// asError returns an error with the exit code for errors.
func asError(err error) error {
	if err == nil {
		return nil
	}
	return &exitCode{exitError, err}
}

// printable replaces control characters, which the output of commands may contain.
type printable struct{ io.Writer }

// Write writes the text without control characters.
func (w printable) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, tree.PrintableLines(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
