package kit

import (
	"context"
	"fmt"
	"strings"
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
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

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
	witnesses *[]*Probe
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
	// OperatorNext is the operator's image with another name.
	OperatorNext string
	// Ledger is the image of test/faults/ledger.
	Ledger string
	// Redis is an image of the server, with the tools of the sample's commands, and RedisNext the
	// same image with another name. RedisClient is an
	// image of test/run/redis/client. RedisSample is the path of the sample
	// with commands of its own, and RedisInLines that of spec.application.
	Redis, RedisNext, RedisClient, RedisSample, RedisInLines string
	// PostgreSQL and PostgreSQLNext are images of the server. PostgreSQLClient is an image of
	// test/run/postgres/pgclient. PostgreSQLSample is the path of the sample.
	PostgreSQL, PostgreSQLNext, PostgreSQLClient, PostgreSQLSample string
	// Etcd and EtcdNext are images of the server. EtcdClient is an image of test/run/etcd/etcdclient.
	// EtcdSample is the path of the sample.
	Etcd, EtcdNext, EtcdClient, EtcdSample string
	// MariaDB and MariaDBNext are images of the server with Galera. MariaDBClient is an image of
	// test/run/galera/galeraclient. MariaDBSample is the path of the sample.
	MariaDB, MariaDBNext, MariaDBClient, MariaDBSample string
	// RabbitMQ and RabbitMQNext are images of the server. RabbitMQClient is an image of
	// test/run/rabbitmq/rabbitclient. RabbitMQSample is the path of the sample.
	RabbitMQ, RabbitMQNext, RabbitMQClient, RabbitMQSample string
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
	// BlockAPIServer disconnects a node and its pods from the API server only. UnblockAPIServer ends it.
	BlockAPIServer(node string) error
	UnblockAPIServer(node string) error
	// Processes returns all processes of a node. They run on this machine.
	Processes(node string) ([]int, error)
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
	own.witnesses, own.cleanups = new([]*Probe), nil
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

// Another returns a copy of the cluster with one more namespace, which is deleted at the end.
func (c *Cluster) Another(ctx context.Context) *Cluster {
	own, remove, err := c.New(ctx)
	c.Check(err)
	c.Cleanup(remove)
	c.Cleanup(own.cleanUp)
	return own
}

// AtScribe returns the scribe's address of a folder or file in Shared.
func (c *Cluster) AtScribe(path string) string {
	return testimony.Scheme + c.Scribe + strings.TrimPrefix(path, c.Shared)
}
