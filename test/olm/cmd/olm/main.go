// Command olm brings the Operator Lifecycle Manager to the local cluster, and the
// operator to it by a subscription; and takes both away.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/olm"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

const (
	usage     = "usage: olm up|down [--name CLUSTER] [--nodes 3]"
	catalog   = "stateful-operator"
	namespace = "stateful-operator-system"
	version   = "0.0.9" // the earlier one in the catalog
)

func main() {
	log.SetLogger(logr.Discard()) // what is done here is printed
	flags := flag.NewFlagSet("olm", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage) }
	name := flags.String("name", cluster.DefaultName, "")
	nodes := flags.Int("nodes", 3, "")
	if len(os.Args) < 2 {
		flags.Usage()
		os.Exit(2)
	}
	_ = flags.Parse(os.Args[2:]) // it exits by itself
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1], *name, *nodes)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "olm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command, name string, nodes int) error {
	switch command {
	case "up":
		return up(ctx, name, nodes)
	case "down":
		return down(ctx, name)
	}
	return errors.New(usage)
}

func up(ctx context.Context, name string, nodes int) error {
	local, err := cluster.Up(ctx, cluster.Options{Name: name, Nodes: nodes, Log: os.Stdout})
	if err != nil {
		return err
	}
	m, err := olm.Open(ctx, local, os.Stdout)
	if err != nil {
		return err
	}
	if err := m.Install(ctx); err != nil {
		return err
	}
	m.Say("building the operator …")
	operator := program.Operator(filepath.Join("build", "olm", "stateful-operator.tar"))
	present, err := operator.Write(ctx)
	if err != nil {
		return err
	}
	if err := local.LoadImage(ctx, operator.Tar); err != nil {
		return err
	}
	operator.Ref = present + "-earlier"
	earlier, err := operator.Write(ctx)
	if err != nil {
		return err
	}
	if err := local.LoadImage(ctx, operator.Tar); err != nil {
		return err
	}
	old, err := m.Bundle("bundle", version, earlier)
	if err != nil {
		return err
	}
	now, err := m.Bundle("bundle", "", present)
	if err != nil {
		return err
	}
	folder, err := m.Catalog(ctx, catalog, old, now)
	if err != nil {
		return err
	}
	if err := m.Serve(ctx, catalog, folder); err != nil {
		return err
	}
	if err := m.Subscribe(ctx, olm.Subscription{Namespace: namespace, Catalog: catalog}); err != nil {
		return err
	}
	if _, err := m.Succeeded(ctx, namespace, now.Name); err != nil {
		return err
	}
	suggest(local)
	return nil
}

func suggest(local *cluster.Cluster) {
	fmt.Printf(`
Try next:
  export KUBECONFIG=%s
  alias kubectl=%s
  kubectl -n %s get csv,subscriptions,installplans,pods
  kubectl apply -f config/samples/statefulcluster/coder.yaml && kubectl get stc -w

Stop:
  make olm-down
`, local.Kubeconfig(), filepath.Join(local.Programs(), "kubectl"), namespace)
}

func down(ctx context.Context, name string) error {
	local, err := cluster.Open(name)
	if err != nil {
		return err
	}
	m, err := olm.Open(ctx, local, os.Stdout)
	if err != nil {
		return err
	}
	return m.Remove(ctx)
}
