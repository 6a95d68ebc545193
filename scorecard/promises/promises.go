// Package promises holds what each kind promises its users, each promise as a
// function that tries it on a real cluster. `go test ./scorecard/...` runs
// them, and so do the custom scorecard tests.
package promises

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers"
)

// Promise is one thing that users rely on.
type Promise struct {
	// Name begins with the number of the acceptance that it shows.
	Name string
	// Faults is true when the nodes must be ours: to be cut off or powered down,
	// or to be looked into from outside, as a witness's observer does.
	Faults bool
	// Scribed is true when a scribe will do in place of what is looked into.
	Scribed bool
	// Site is the cluster that it is tried on: SharedSite with many others at a time, or one
	// after another on a cluster whose nodes, API server or operator it may disturb.
	Site Site
	// Long is true of one of those that takes minutes: a test of the scorecard that
	// is long is none of the core.
	Long bool
	// Core is true of one of those that each change is tried with, beside the scorecard's
	// tests. All are tried each night.
	Core bool
	// Run tries it. What it expects of the cluster is what is promised.
	Run func(context.Context, *Cluster)
}

// Site is the name of a cluster for promises that get on with each other. Sites are
// tried beside each other, each on a cluster of its own.
type Site string

const (
	// SharedSite is for promises that disturb neither nodes nor the operator. They are
	// tried many at a time, and on any cluster.
	SharedSite Site = "shared"
	// NodeSite is for those that cut off, power down, taint or fill nodes, or stop the
	// API server.
	NodeSite Site = "nodes"
	// OperatorSite is for those that kill, stop, freeze or reconfigure the operator.
	OperatorSite Site = "operator"
)

// Alone are the sites whose promises are tried one after another.
var Alone = []Site{NodeSite, OperatorSite}

// beside is a promise that can be tried beside others, on any cluster.
func beside(name string, run func(context.Context, *Cluster)) Promise {
	return Promise{Name: name, Site: SharedSite, Run: run}
}

// long is the same promise, of which it is known that it takes minutes.
func long(p Promise) Promise {
	p.Long = true
	return p
}

// core is the same promise, tried with each change.
func core(p Promise) Promise {
	p.Core = true
	return p
}

// Cluster is where promises are tried. One goroutine uses it: others have a copy, see
// Kept.
type Cluster struct {
	// Gomega is what fails a promise; failBy sets it.
	Gomega
	Client client.Client
	Images
	// Namespace is where the promise puts its objects; New sets it.
	Namespace string
	// Operator is the Deployment of the operator.
	Operator client.ObjectKey
	// Kube and Config are for what Client cannot do, such as reading logs and
	// running commands.
	Kube   kubernetes.Interface
	Config *rest.Config
	// Nodes makes faults; nil where that is not possible.
	Nodes Nodes
	// Shared is a folder of this machine that is on each node under the same
	// path; empty where Nodes is nil.
	Shared string
	// Scribe is where pods reach one (test/faults/scribe) that keeps Shared as a
	// folder of this machine alone: host:port. Empty where the nodes have it.
	Scribe string
	// Handovers is how many the soak of StatefulSingleton makes, and Faults how
	// many runs that of ReplicatedStatefulSet, by chance that begins with Seed.
	Handovers, Faults int
	Seed              uint64
	// Fault is in the names of the faults of those runs, and in those of the scenarios
	// in which a leader is frozen: so often a kind, and at each write if 0.
	Fault   string
	Freezes int
	// Program is where this machine has the operator's program; empty where Nodes is nil.
	Program string
	// Log takes progress, a line each.
	Log func(format string, args ...any)

	// between is how long a ledger's client waits between two writes; a while if not said.
	between time.Duration
	// witnesses are of all applications of this promise, whose programs must not overlap.
	witnesses *[]*application
	// fails is what failBy was told; while is said before what fails; cleanups are done
	// at the end.
	fails    types.GomegaFailHandler
	while    string
	cleanups []func()
}

// Images are what promises run.
type Images struct {
	// Image has a shell at /bin/sh, and an httpd as Busybox has; OtherImage has a shell
	// too, and differs.
	Image, OtherImage string
	// Witness and WitnessShell are images of test/faults/witness; the second
	// has a shell too.
	Witness, WitnessShell string
	// Ledger is the image of test/faults/ledger.
	Ledger string
	// Redis is an image of the server, with what the sample's commands use;
	// RedisClient is one of test/run/redis/client; RedisSample the sample's file.
	Redis, RedisClient, RedisSample string
	// Dummy is an image of the original's sample application, DummySample the original's
	// manifest of it.
	Dummy, DummySample string
}

// Nodes are the machines of a cluster that can be disturbed.
type Nodes interface {
	// Cut takes a node off the network; its programs run on. Heal ends it.
	Cut(node string) error
	Heal(node string) error
	// StopKubelet ends a node's kubelet; its programs run on. StartKubelet ends
	// it.
	StopKubelet(node string) error
	StartKubelet(node string) error
	// BlockKubelet keeps the API server from reaching a node's kubelet, which still reports
	// that it is Ready. UnblockKubelet ends it.
	BlockKubelet(node string) error
	UnblockKubelet(node string) error
	// StopNode powers a node off, StartNode on.
	StopNode(node string) error
	StartNode(node string) error
	// StaticPods is the folder whose manifests a node's kubelet runs by itself.
	StaticPods(node string) (string, error)
	// StopAPIServer ends the only API server; nodes run on. StartAPIServer ends
	// it, when it answers.
	StopAPIServer() error
	StartAPIServer() error
}

// Connect is the cluster that a configuration leads to.
func Connect(config *rest.Config) (*Cluster, error) {
	config.QPS = -1
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Config: config}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	c.Kube, err = kubernetes.NewForConfig(config)
	return c, err
}

// New is the same cluster with a namespace of its own for one promise, and a
// function that removes it.
func (c *Cluster) New(ctx context.Context) (*Cluster, func(), error) {
	own := *c
	own.witnesses, own.cleanups = new([]*application), nil
	if c.fails != nil {
		own.failBy(c.fails)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "promise-" + rand.String(6)}}
	if err := c.Client.Create(ctx, ns); err != nil {
		return nil, nil, fmt.Errorf("create a namespace: %w", err)
	}
	own.Namespace = ns.Name
	return &own, func() { _ = c.Client.Delete(context.WithoutCancel(ctx), ns) }, nil
}

// another is the same cluster with a namespace more, which goes at the end.
func (c *Cluster) another(ctx context.Context) *Cluster {
	own, remove, err := c.New(ctx)
	c.check(err)
	c.Cleanup(remove)
	c.Cleanup(own.cleanUp)
	return own
}
