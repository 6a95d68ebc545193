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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Promise is one thing that users rely on.
type Promise struct {
	// Name begins with the number of the acceptance that it shows.
	Name string
	// Faults is true when nodes must be cut off or powered down for it.
	Faults bool
	// Keep tries it. An error says what was found instead.
	Keep func(context.Context, *Cluster) error
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
	// Nodes makes faults; nil where that is not possible.
	Nodes Nodes
	// Log takes progress, a line each.
	Log func(format string, args ...any)
}

// Nodes are the machines of a cluster that can be disturbed.
type Nodes interface {
	// Cut takes a node off the network; its programs run on. Heal ends it.
	Cut(node string) error
	Heal(node string) error
}

// New is the same cluster with a namespace of its own for one promise, and a
// function that removes it.
func (c *Cluster) New(ctx context.Context) (*Cluster, func(), error) {
	own := *c
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
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited for %s: %w", what, last)
	}
	return nil
}
