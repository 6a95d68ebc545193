// Command kubernetes contains all Kubernetes programs of a local cluster, and etcd. The name by
// which it is called selects the program. A single binary takes a minute less to build than
// separate ones, and a quarter of the space.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// daemons are constructed only when they are called, because each adds its own flags and metrics.
var daemons = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": manager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 newKubelet,
}

// newKubelet returns the kubelet's command in any version: newer ones take a context.
func newKubelet() *cobra.Command {
	switch command := any(kubelet.NewKubeletCommand).(type) {
	case func() *cobra.Command:
		return command()
	case func(context.Context) *cobra.Command:
		return command(context.Background())
	default:
		panic(fmt.Sprintf("NewKubeletCommand is a %T", command))
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	switch daemon, known := daemons[name]; {
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	case known:
		os.Exit(cli.Run(daemon()))
	default:
		fmt.Fprintf(os.Stderr, "%s: run this program under the name of a component\n", name)
		os.Exit(2)
	}
}
