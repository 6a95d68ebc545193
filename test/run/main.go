// Command run shows the operator at work: it boots the local cluster (or uses
// KUBECONFIG's), with simulated nodes where there can be no others, deploys the operator into it from its image, applies samples of
// each kind, waits until they are Ready, rolls the StatefulSingleton out, lets a
// ReplicatedStatefulSet fail over, gives an ExtendedStatefulSet a good and a bad
// upgrade, and says what to try next.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/place"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	"github.com/stateful-operator/stateful-operator/test/run/steps"
)

func main() {
	log.SetLogger(logr.Discard()) // what is done here is printed
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
		fmt.Println("Without nodes, these are simulated: nodes, containers, and what commands do. " +
			"Real are: Kubernetes' control plane, the operator, its webhooks.")
	}
	var s shown
	open := steps.Step{Title: "Booting a cluster, and building the images beside it", Key: string(kind), Usual: time.Minute,
		Do: func(ctx context.Context) (err error) {
			s.Place, err = place.Open(ctx, kind, operator, coder, witness, ledger)
			return err
		}}
	if kind == place.Given {
		open.Title = "Building the images"
	}
	if !cluster.Built(kind.Sets()...) {
		open.Key, open.Usual = open.Key+", all of it built", 12*time.Minute
	}
	all := append([]steps.Step{open}, s.samples(string(kind))...)
	if err := steps.Run(ctx, os.Stdout, steps.File(), all); err != nil {
		return err
	}
	fmt.Printf("\n==> Ready after %s\n", time.Since(began).Round(time.Second))
	return s.show(ctx)
}

// samples are the steps in a cluster that is there.
func (s *shown) samples(kind string) []steps.Step {
	step := func(title string, usual time.Duration, do func(shown, context.Context) error) steps.Step {
		return steps.Step{Title: title, Key: kind + ": " + title, Usual: usual,
			Do: func(ctx context.Context) error { return do(*s, ctx) }}
	}
	return []steps.Step{
		step("Deploying the operator", 40*time.Second, func(s shown, ctx context.Context) error { return s.Operator(ctx) }),
		step("Applying the sample "+coderFile, 10*time.Second, shown.applyCoder),
		step("Applying the sample "+mailerFile, 10*time.Second, shown.applyMailer),
		step("A rollout of StatefulSingleton mailer", 5*time.Second, shown.rollMailer),
		step("Applying the sample "+dummyFile, 15*time.Second, shown.applyDummy),
		step("Applying the sample "+ledgerFile, 15*time.Second, shown.applyLedger),
		step("A failover of ReplicatedStatefulSet ledger", place.Calm+15*time.Second, shown.failOver),
		step("Applying the sample "+shopFile, 20*time.Second, shown.startShop),
		step("A good upgrade of ExtendedStatefulSet shop", 20*time.Second, shown.upgradeShop),
		step("A bad upgrade of ExtendedStatefulSet shop: an image that does not exist", 20*time.Second, shown.spoilShop),
	}
}

// The programs in the images.
var (
	operator = program.Operator("build/run/stateful-operator.tar")
	ledger   = program.Ledger("build/run/ledger.tar")
	// Root, because the sample asks for no group on its volumes.
	coder   = program.Program{Package: "./test/run/coder", Ref: "localhost/coder", User: "0:0", Tar: "build/run/coder.tar"}
	witness = program.Program{Package: "./test/faults/witness", Ref: "localhost/witness", User: "65532:65532", Tar: "build/run/witness.tar"}
)

// shown is the cluster with what is shown in it.
type shown struct{ place.Place }
