// Package promises contains what each kind promises its users. Each promise is a function that
// tests it on a real cluster. `go test ./scorecard/...` and the custom scorecard tests run them.
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

// Promise is one behavior that users rely on.
type Promise struct {
	// Name begins with the number of the acceptance that it covers.
	Name string
	// Faults is true if the promise needs control of the nodes: to disconnect or power off nodes,
	// or to read their files from outside, as the observer of a witness does.
	Faults bool
	// Scribed is true if a scribe can replace the access to the nodes' files.
	Scribed bool
	// Site is the cluster of the promise: SharedSite runs many promises at the same time, other
	// sites run them one after another on a cluster whose nodes, API server or operator they may
	// disturb.
	Site Site
	// Long is true if the promise takes minutes. A long scorecard test is not part of the core by
	// default.
	Long bool
	// Core is true if the promise is tested with each change, in addition to the scorecard's tests.
	// All promises are tested each night.
	Core bool
	// Run tests the promise. Its expectations of the cluster are the promise.
	Run func(context.Context, *Cluster)
}

// Site is the name of a cluster for promises that can share it. Sites run concurrently, each on its
// own cluster.
type Site string

const (
	// SharedSite is for promises that disturb neither nodes nor the operator. Many of them run at
	// the same time, on any cluster.
	SharedSite Site = "shared"
	// NodeSite is for promises that disconnect, power off, taint or fill nodes, or stop the API
	// server.
	NodeSite Site = "nodes"
	// OperatorSite is for promises that kill, stop, freeze or reconfigure the operator.
	OperatorSite Site = "operator"
)

// Alone lists the sites whose promises run one after another.
var Alone = []Site{NodeSite, OperatorSite}

// beside returns a promise that can run at the same time as others, on any cluster.
func beside(name string, run func(context.Context, *Cluster)) Promise {
	return Promise{Name: name, Site: SharedSite, Run: run}
}

// long marks a promise that takes minutes.
func long(p Promise) Promise {
	p.Long = true
	return p
}

// core marks a promise that is tested with each change.
func core(p Promise) Promise {
	p.Core = true
	return p
}

// Cluster is the cluster in which promises are tested. Only one goroutine uses it: others use a
// copy, see Kept.
type Cluster struct {
	// Gomega fails the promise. failBy sets it.
	Gomega
	Client client.Client
	Images
	// Namespace is the promise's namespace. New sets it.
	Namespace string
	// Operator is the name of the operator's Deployment.
	Operator client.ObjectKey
	// Kube and Config are for requests that Client does not support, such as logs and exec.
	Kube   kubernetes.Interface
	Config *rest.Config
	// Nodes injects faults. It is nil if that is not possible.
	Nodes Nodes
	// Shared is a folder of this machine that each node has under the same path. It is empty if
	// Nodes is nil.
	Shared string
	// Scribe is the address (host:port) of a scribe (test/faults/scribe) that pods can reach. It
	// writes to Shared, which is then local to this machine. It is empty if the nodes share the
	// folder.
	Scribe string
	// Handovers is the number of handovers in the soak of StatefulSingleton. Faults is the number
	// of runs in the soak of ReplicatedStatefulSet. Seed is the seed of their random choices.
	Handovers, Faults int
	Seed              uint64
	// Fault selects faults of these runs and scenarios with a frozen leader: their names contain
	// it. Freezes is the number of freezes for each kind; 0 means at each write.
	Fault   string
	Freezes int
	// WriteInterval is the interval between two writes of a ledger's client. 0 means the default.
	WriteInterval time.Duration
	// Program is the path of the operator's program on this machine. It is empty if Nodes is nil.
	Program string
	// Log writes one line of progress.
	Log func(format string, args ...any)

	// witnesses are the overlap probes of all applications of this promise. Copies of the cluster
	// share them.
	witnesses *[]*probe
	// fails is the function passed to failBy. while is the prefix of failure messages. cleanups run
	// at the end.
	fails    types.GomegaFailHandler
	while    string
	cleanups []func()
}

// Images are the images that promises run.
type Images struct {
	// Image has a shell at /bin/sh, and an httpd like Busybox. OtherImage is a different image with
	// a shell.
	Image, OtherImage string
	// Witness and WitnessShell are images of test/faults/witness. Only WitnessShell has a shell.
	Witness, WitnessShell string
	// Ledger is the image of test/faults/ledger.
	Ledger string
	// Redis is an image of the server, with the tools of the sample's commands. RedisClient is an
	// image of test/run/redis/client. RedisSample is the path of the sample.
	Redis, RedisClient, RedisSample string
	// Dummy is an image of the original's sample application. DummySample is the original's
	// manifest of it.
	Dummy, DummySample string
}

// Nodes are the machines of a cluster that can be disturbed.
type Nodes interface {
	// Cut disconnects a node from the network. Its programs continue to run. Heal reconnects it.
	Cut(node string) error
	Heal(node string) error
	// StopKubelet stops a node's kubelet. Its programs continue to run. StartKubelet starts it
	// again.
	StopKubelet(node string) error
	StartKubelet(node string) error
	// BlockKubelet makes a node's kubelet unreachable for the API server, while the kubelet still
	// reports that it is Ready. UnblockKubelet ends it.
	BlockKubelet(node string) error
	UnblockKubelet(node string) error
	// StopNode powers a node off. StartNode powers it on.
	StopNode(node string) error
	StartNode(node string) error
	// StaticPods returns the folder of the manifests of a node's static pods.
	StaticPods(node string) (string, error)
	// StopAPIServer stops the only API server. Nodes continue to run. StartAPIServer starts it, and
	// waits until it responds.
	StopAPIServer() error
	StartAPIServer() error
}

// Connect returns the cluster of a configuration.
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

// New creates a namespace for one promise. It returns a copy of the cluster that uses it, and a
// function that deletes it.
func (c *Cluster) New(ctx context.Context) (*Cluster, func(), error) {
	own := *c
	own.witnesses, own.cleanups = new([]*probe), nil
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

// another returns a copy of the cluster with one more namespace, which is deleted at the end.
func (c *Cluster) another(ctx context.Context) *Cluster {
	own, remove, err := c.New(ctx)
	c.check(err)
	c.Cleanup(remove)
	c.Cleanup(own.cleanUp)
	return own
}
