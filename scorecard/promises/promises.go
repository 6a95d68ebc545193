// Package promises holds what each kind promises its users, each promise as a
// function that tries it on a real cluster. `go test ./scorecard/...` runs
// them, and so do the custom scorecard tests.
package promises

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	// Together is true when it can be tried beside others: it disturbs neither
	// nodes nor the operator.
	Together bool
	// Long is true of one of those that takes minutes: it is begun before the
	// others, so that it does not go on when they have ended.
	Long bool
	// Keep tries it. An error says what was found instead.
	Keep func(context.Context, *Cluster) error
}

// beside is a promise that can be tried beside others, on any cluster.
func beside(name string, keep func(context.Context, *Cluster) error) Promise {
	return Promise{Name: name, Together: true, Keep: keep}
}

// long is the same promise, begun before others.
func long(p Promise) Promise {
	p.Long = true
	return p
}

// Cluster is where promises are tried.
type Cluster struct {
	Client client.Client
	// Image has a shell at /bin/sh; OtherImage does too, and differs.
	Image, OtherImage string
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
	// Handovers is how many the soak of StatefulSingleton makes, and Faults how
	// many runs that of ReplicatedStatefulSet, by chance that begins with Seed.
	Handovers, Faults int
	Seed              uint64
	// Fault is in the names of the faults of those runs, and in those of the scenarios
	// in which a leader is frozen: so often a kind, and at each write if 0.
	Fault   string
	Freezes int
	// BuildOperator builds the operator's program for this machine, and says where it
	// is; Program is that, for promises that have built it.
	BuildOperator func(context.Context) (string, error)
	Program       string
	// Log takes progress, a line each.
	Log func(format string, args ...any)

	// applications are those of this promise, whose programs must not overlap.
	applications []*application
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

// New is the same cluster with a namespace of its own for one promise, and a
// function that removes it.
func (c *Cluster) New(ctx context.Context) (*Cluster, func(), error) {
	own := *c
	own.applications = nil
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "promise-" + rand.String(6)}}
	if err := c.Client.Create(ctx, ns); err != nil {
		return nil, nil, fmt.Errorf("create a namespace: %w", err)
	}
	own.Namespace = ns.Name
	return &own, func() { _ = c.Client.Delete(context.WithoutCancel(ctx), ns) }, nil
}

// patience bounds every wait. It is a limit for what never comes, not a goal.
const patience = 4 * time.Minute

// until waits until check returns nil; the error is its last one.
func until(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := check(ctx); err == nil || ctx.Err() == nil || last == nil {
			last = err // one that only says that time is up hides the better one
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited for %s: %w", what, last)
	}
	return nil
}

// sleep lets that long pass. The error is that of ctx, if it ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
