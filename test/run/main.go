// Command run demonstrates the operator. It boots the local cluster (or uses that of KUBECONFIG), with
// simulated nodes if this machine cannot run nodes. It deploys the operator from its image, applies
// samples of each kind, and waits until they are Ready. Then it restarts the StatefulSingleton,
// requests a switchover of a ReplicatedStatefulSet and deletes its primary, applies a good and a bad upgrade to an
// ExtendedStatefulSet, and prints suggestions for the user.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/place"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	"github.com/stateful-operator/stateful-operator/test/run/steps"
)

func main() {
	log.SetLogger(logr.Discard()) // the command prints its own output
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	began := time.Now()
	kind, why := place.Choose()
	if why != nil {
		fmt.Println(why)
		fmt.Println("Without nodes, these are simulated: nodes, containers, and the effects of commands. " +
			"These are real: Kubernetes' control plane, the operator, its webhooks.")
	}
	var s shown
	open := steps.Step{Title: "Booting a cluster, and building the images in parallel", Key: string(kind), Usual: time.Minute,
		Do: func(ctx context.Context) (err error) {
			s.Place, err = place.Open(ctx, kind, operator, coder, witness, ledger)
			return err
		}}
	if kind == place.Given {
		open.Title = "Building the images"
	}
	if !cluster.Built(kind.Sets()...) {
		open.Key, open.Usual = open.Key+", with everything built", 12*time.Minute
	}
	step := func(title string, usual time.Duration, do func(shown, context.Context) error) steps.Step {
		return steps.Step{Title: title, Key: string(kind) + ": " + title, Usual: usual,
			Do: func(ctx context.Context) error { return do(s, ctx) }}
	}
	all := []steps.Step{
		open,
		step("Deploying the operator", 40*time.Second, func(s shown, ctx context.Context) error { return s.Operator(ctx) }),
		step("Testing a sample of each kind: rollouts, a switchover, a good upgrade and a bad one", 30*time.Second, shown.samples),
	}
	if err := steps.Run(ctx, os.Stdout, steps.File(), all); err != nil {
		return err
	}
	fmt.Printf("\n==> Ready after %s\n", time.Since(began).Round(time.Second))
	return s.show(ctx)
}

// samples runs the samples in parallel, because they mostly wait.
func (s shown) samples(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, sample := range [][]func(shown, context.Context) error{
		{shown.startShop, shown.upgradeShop, shown.spoilShop}, // takes longest
		{shown.applyOrders, shown.switchOver, shown.failOver},
		{shown.applyMailer, shown.rollMailer},
		{shown.applyCoder},
		{shown.applyDummy},
	} {
		all.Go(func() error {
			for _, do := range sample {
				if err := do(s, ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// Programs in the images.
var (
	operator = program.Operator("build/run/stateful-operator.tar")
	ledger   = program.Ledger("build/run/ledger.tar")
	// Root, because the sample sets no fsGroup.
	coder   = program.Program{Package: "./test/run/coder", Ref: "localhost/coder", User: "0:0", Tar: "build/run/coder.tar"}
	witness = program.Program{Package: "./test/faults/witness", Ref: "localhost/witness", User: "65532:65532", Tar: "build/run/witness.tar"}
)

// shown is the cluster with the samples.
type shown struct{ place.Place }
