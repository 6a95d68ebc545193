// Command olm installs the Operator Lifecycle Manager in the local cluster, and the operator by a
// subscription. It also removes both.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

const (
	usage     = "usage: olm up|down [--name CLUSTER] [--nodes 3]"
	catalog   = "stateful-operator"
	namespace = "stateful-operator-system"
)

func main() {
	log.SetLogger(logr.Discard()) // the command prints its own output
	flags := flag.NewFlagSet("olm", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage) }
	name := flags.String("name", cluster.DefaultName, "")
	nodes := flags.Int("nodes", 3, "")
	if len(os.Args) < 2 || os.Args[1] != "up" && os.Args[1] != "down" {
		flags.Usage()
		os.Exit(2)
	}
	_ = flags.Parse(os.Args[2:]) // it exits on errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	g := gomega.NewGomega(func(message string, _ ...int) {
		fmt.Fprintln(os.Stderr, "olm:", message)
		os.Exit(1)
	})
	if os.Args[1] == "up" {
		up(ctx, g, cluster.Options{Name: *name, Nodes: *nodes, Log: os.Stdout})
	} else {
		down(ctx, g, *name)
	}
}

func up(ctx context.Context, g gomega.Gomega, options cluster.Options) {
	local, err := cluster.Up(ctx, options)
	g.Expect(err == nil).To(gomega.BeTrueBecause("%v", err))
	m := olm.Open(ctx, g, local, os.Stdout)
	m.Install(ctx)
	_, now := m.ServeVersions(ctx, catalog)
	m.Subscribe(ctx, olm.Subscription{Namespace: namespace, Catalog: catalog})
	m.Succeeded(ctx, namespace, now.Name)
	suggest(local)
}

func suggest(local *cluster.Cluster) {
	fmt.Printf(`
Try next:
  export KUBECONFIG=%s
  alias kubectl=%s
  kubectl -n %s get csv,subscriptions,installplans,pods
  kubectl apply -f config/samples/statefulcluster/plain.yaml && kubectl get stc -w

Stop:
  make olm-down
`, local.Kubeconfig(), filepath.Join(local.Programs(), "kubectl"), namespace)
}

func down(ctx context.Context, g gomega.Gomega, name string) {
	local, err := cluster.Open(name)
	g.Expect(err == nil).To(gomega.BeTrueBecause("%v", err))
	olm.Open(ctx, g, local, os.Stdout).Remove(ctx)
}
