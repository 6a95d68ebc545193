// Package command implements the commands of kubectl stateful.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/gather"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

// owner is the field manager of the plugin's writes.
const owner = client.FieldOwner("kubectl-stateful")

// site is the cluster and the namespace of a command.
type site struct {
	client.Client
	Namespace string
	// Logs reads logs of pods.
	Logs gather.Logs
	// Exec runs a command in a pod.
	Exec func(context.Context, plugin.Command) plugin.CommandResult
}

// Plugin is shared by all commands. Tests set other values.
type Plugin struct {
	Streams genericiooptions.IOStreams
	// Version is the version of the plugin.
	Version string
	// Connect connects to the cluster.
	Connect func() (site, error)
	// Now returns the time.
	Now func() time.Time
	// Interval is the interval between two checks of a command that waits.
	Interval time.Duration
}

// Run runs the command with these arguments, and returns the exit code. The version is the
// plugin's.
func Run(ctx context.Context, streams genericiooptions.IOStreams, version string, args []string) int {
	klog.SetOutput(io.Discard) // discard messages of libraries
	klog.LogToStderr(false)
	log.SetLogger(klog.Background())
	flags := genericclioptions.NewConfigFlags(true)
	p := &Plugin{Streams: streams, Version: version, Now: time.Now, Interval: time.Second, Connect: func() (site, error) { return connect(flags) }}
	root := p.Root()
	flags.AddFlags(root.PersistentFlags())
	return p.Execute(ctx, root, args)
}

// Execute runs a command, and writes its error like kubectl.
func (p *Plugin) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(p.Streams.In)
	root.SetOut(p.Streams.Out)
	root.SetErr(p.Streams.ErrOut)
	executed, err := root.ExecuteContextC(ctx)
	code := 1
	if isLikeDiff(executed) {
		code = exitError
	}
	if exit := (*exitCode)(nil); errors.As(err, &exit) {
		code, err = exit.code, exit.err
	} else if err == nil {
		return 0
	}
	if err != nil {
		fmt.Fprintln(p.Streams.ErrOut, tree.PrintableLines(explain(err)))
	}
	return code
}

// likeDiff is the annotation of commands whose exit code is 1 if they find something, and above 1 for an error, as that
// of kubectl diff. It also applies to their subcommands.
const likeDiff = "like-diff"

func isLikeDiff(c *cobra.Command) bool {
	for ; c != nil; c = c.Parent() {
		if c.Annotations[likeDiff] != "" {
			return true
		}
	}
	return false
}

// explain formats an error like kubectl.
func explain(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Reason != "" {
		return fmt.Sprintf("Error from server (%s): %v", status.Status().Reason, err)
	}
	if missing := (*meta.NoKindMatchError)(nil); errors.As(err, &missing) {
		return fmt.Sprintf("error: the server doesn't have a resource type %q; is stateful-operator installed?", missing.GroupKind)
	}
	return "error: " + err.Error()
}

func connect(flags *genericclioptions.ConfigFlags) (site, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return site{}, err
	}
	config.QPS, config.Burst, config.UserAgent = 50, 100, "kubectl-stateful"
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return site{}, err
	}
	scheme, err := kinds.Scheme()
	if err != nil {
		return site{}, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return site{}, err
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return site{}, err
	}
	executor, err := plugin.NewExecutor(config, c)
	if err != nil {
		return site{}, err
	}
	return site{Client: c, Namespace: namespace, Logs: gather.LogsOf(core), Exec: executor.Run}, nil
}

// Root returns the root command with all its subcommands.
func (p *Plugin) Root() *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-stateful", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl stateful"},
		Short: "Show and control StatefulClusters, ReplicatedStatefulSets, ExtendedStatefulSets and StatefulSingletons",
		Long: "kubectl stateful shows and controls the kinds of stateful-operator:\n" +
			"StatefulCluster (stc), ReplicatedStatefulSet (rss), ExtendedStatefulSet (ests), StatefulSingleton (ssn).\n\n" +
			"Specify an object as KIND NAME or KIND/NAME, for example rss/db.",
		SilenceErrors: true, SilenceUsage: true,
		Version: p.Version,
	}
	root.SetVersionTemplate("kubectl stateful {{.Version}}\n")
	root.AddCommand(p.status(), p.why(), p.describe(), p.plan(), p.checkCommands(), p.rollout(), p.switchover(), p.fence(), p.unfence(), p.release(), p.gather(), p.version())
	return root
}

// version returns the command that prints the same as --version, like kubectl version.
func (p *Plugin) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of the plugin", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Run: func(*cobra.Command, []string) { p.say("kubectl stateful %s", p.Version) },
	}
}

// object returns a command for one object.
func (p *Plugin) object(c *cobra.Command, run func(context.Context, site, kinds.Kind, string) error) *cobra.Command {
	c.Use += " (KIND NAME | KIND/NAME)"
	c.Args = cobra.MaximumNArgs(2) // kinds.ParseArgs reports missing arguments
	c.ValidArgsFunction = p.complete
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, args []string) error {
		kind, name, err := kinds.ParseArgs(args)
		if err != nil {
			return err
		}
		s, err := p.Connect()
		if err != nil {
			return err
		}
		return run(c.Context(), s, kind, name)
	}
	return c
}

// complete completes kinds, and then the names of objects.
func (p *Plugin) complete(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return kinds.Shorts(), cobra.ShellCompDirectiveNoFileComp
	}
	kind, err := kinds.Parse(args[0])
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.names(c.Context(), kind), cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of the objects of a kind, or none if they cannot be read.
func (p *Plugin) names(ctx context.Context, kind kinds.Kind) []string {
	s, err := p.Connect()
	if err != nil {
		return nil
	}
	found, _ := namesOf(ctx, s, kind)
	return found
}

// namesOf returns the names of the objects of a kind in the namespace.
func namesOf(ctx context.Context, s site, kind kinds.Kind) ([]string, error) {
	list := kind.NewList()
	if err := s.List(ctx, list, client.InNamespace(s.Namespace)); err != nil {
		return nil, err
	}
	return gather.NamesOf(list), nil
}

// print writes a value as JSON or YAML.
func (p *Plugin) print(format string, value any) error {
	var text []byte
	var err error
	switch format {
	case "json":
		text, err = json.MarshalIndent(value, "", "    ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,yaml", format)
	}
	if err != nil {
		return err
	}
	_, err = p.Streams.Out.Write(text)
	return err
}

// color reports whether the output is a terminal with colors.
func (p *Plugin) color() bool {
	file, ok := p.Streams.Out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return term.IsTerminal(int(file.Fd()))
}

func (p *Plugin) say(format string, args ...any) {
	fmt.Fprintln(p.Streams.Out, tree.PrintableLines(fmt.Sprintf(format, args...)))
}

func (p *Plugin) warn(format string, args ...any) {
	fmt.Fprintln(p.Streams.ErrOut, tree.PrintableLines(fmt.Sprintf(format, args...)))
}
