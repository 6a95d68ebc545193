// Command cluster boots a real Kubernetes on this machine; see package cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/nodeinit"
	"github.com/stateful-operator/stateful-operator/test/cluster/simulated"
	"github.com/stateful-operator/stateful-operator/test/cluster/volumes"
)

const usage = `usage: cluster COMMAND [--name NAME] [ARGUMENT]

  up [--nodes 3 | --control-plane]   boot a cluster, or report that it runs; of an older Kubernetes
     [--kubernetes 1.33]             with --kubernetes (1.30 1.33)
  down                               stop it and remove all of its files
  status                             show its processes
  kubeconfig                         print the path of its kubeconfig
  build [SET...]                     build programs only (kubernetes containerd coredns kwok olm opm
                                     operator-sdk prometheus), or an older Kubernetes
                                     (kubernetes-1.30 kubernetes-1.33)
  packages                           install the packages that nodes and the tests of gate/ require
  load TAR...                        load images into every node
  kwok COUNT                         simulated nodes, with up --control-plane
  cut NODE, heal NODE                disconnect a node from the network, and reconnect it
  stop-kubelet NODE, start-kubelet NODE
  stop-node NODE, start-node NODE    power off, power on
  stop-apiserver, start-apiserver
`

// invocation is one call of the program.
type invocation struct {
	name    string
	nodes   int
	control bool
	version string
	args    []string
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1], os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, command string, args []string) error {
	var in invocation
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flags.StringVar(&in.name, "name", cluster.DefaultName, "")
	flags.IntVar(&in.nodes, "nodes", 3, "")
	flags.BoolVar(&in.control, "control-plane", false, "")
	flags.StringVar(&in.version, "kubernetes", "", "")
	// Flags are accepted before and after the arguments.
	for rest := args; len(rest) > 0; {
		if err := flags.Parse(rest); err != nil {
			return err
		}
		rest = flags.Args()
		if len(rest) > 0 {
			in.args, rest = append(in.args, rest[0]), rest[1:]
		}
	}
	run, known := commands[command]
	if !known {
		return fmt.Errorf("unknown command\n%s", usage)
	}
	return run(ctx, in)
}

var commands = map[string]func(context.Context, invocation) error{
	"up":              up,
	"down":            func(ctx context.Context, in invocation) error { return cluster.Down(ctx, in.name, os.Stdout) },
	"build":           build,
	"packages":        func(ctx context.Context, _ invocation) error { return cluster.InstallPackages(ctx, os.Stdout) },
	"kubeconfig":      with(func(_ context.Context, c *cluster.Cluster, _ []string) error { return say(c.Kubeconfig()) }),
	"status":          with(func(ctx context.Context, c *cluster.Cluster, _ []string) error { return c.Status(ctx, os.Stdout) }),
	"load":            with(load),
	"kwok":            with(kwok),
	"cut":             eachNode((*cluster.Cluster).Cut),
	"heal":            eachNode((*cluster.Cluster).Heal),
	"stop-kubelet":    eachNode((*cluster.Cluster).StopKubelet),
	"start-kubelet":   eachNode((*cluster.Cluster).StartKubelet),
	"stop-node":       eachNode((*cluster.Cluster).StopNode),
	"start-node":      eachNode((*cluster.Cluster).StartNode),
	"stop-apiserver":  with(func(_ context.Context, c *cluster.Cluster, _ []string) error { return c.StopAPIServer() }),
	"start-apiserver": with(func(_ context.Context, c *cluster.Cluster, _ []string) error { return c.StartAPIServer() }),

	// Commands that a cluster starts itself.
	"node-init": func(_ context.Context, in invocation) error { return nodeinit.Run(in.args[0]) },
	"volumes":   makeVolumes,
	"kubelets":  simulate,
}

func up(ctx context.Context, in invocation) error {
	o := cluster.Options{Name: in.name, Nodes: in.nodes, Version: in.version, Log: os.Stdout}
	boot := cluster.Up
	if in.control {
		boot = cluster.UpControlPlane
	}
	_, err := boot(ctx, o)
	return err
}

func build(ctx context.Context, in invocation) error {
	sets := []cluster.Set{cluster.Kubernetes, cluster.Containerd, cluster.CoreDNS, cluster.Kwok}
	if len(in.args) > 0 {
		sets = nil
		for _, name := range in.args {
			sets = append(sets, cluster.Set(name))
		}
	}
	folders, err := cluster.Build(ctx, os.Stderr, sets...)
	for _, set := range sets {
		if err == nil {
			fmt.Println(folders[set])
		}
	}
	return err
}

func load(ctx context.Context, c *cluster.Cluster, tars []string) error {
	for _, tar := range tars {
		if err := c.LoadImage(ctx, tar); err != nil {
			return err
		}
	}
	return nil
}

func kwok(ctx context.Context, c *cluster.Cluster, args []string) error {
	var count int
	if _, err := fmt.Sscan(strings.Join(args, " "), &count); err != nil {
		return fmt.Errorf("want the number of nodes: %w", err)
	}
	return c.StartKwok(ctx, count)
}

// admin returns the configuration of a cluster's administrator, without client-side rate limits.
func admin(dir string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

// simulate runs the kubelets of the simulated nodes.
func simulate(ctx context.Context, in invocation) error {
	dir := in.args[0]
	config, err := admin(dir)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(in.args[1])
	if err != nil {
		return err
	}
	return simulated.Run(ctx, config, dir, count)
}

func makeVolumes(ctx context.Context, in invocation) error {
	dir := in.args[0]
	config, err := admin(dir)
	if err != nil {
		return err
	}
	return volumes.Run(ctx, config, func(node, volume string) string {
		return filepath.Join(dir, "nodes", node, "volumes", volume)
	})
}

// with opens the cluster for a command.
func with(do func(context.Context, *cluster.Cluster, []string) error) func(context.Context, invocation) error {
	return func(ctx context.Context, in invocation) error {
		c, err := cluster.Open(in.name)
		if err != nil {
			return err
		}
		return do(ctx, c, in.args)
	}
}

// eachNode returns a command that calls do for each given node.
func eachNode(do func(*cluster.Cluster, string) error) func(context.Context, invocation) error {
	return with(func(_ context.Context, c *cluster.Cluster, args []string) error {
		if len(args) == 0 {
			return errors.New("want NODE")
		}
		for _, arg := range args {
			if err := do(c, arg); err != nil {
				return err
			}
		}
		return nil
	})
}

func say(line string) error {
	_, err := fmt.Println(line)
	return err
}
