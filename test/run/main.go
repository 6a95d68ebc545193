// Command run shows the operator at work: it boots the local cluster (or uses
// KUBECONFIG's), deploys the operator into it from its image, applies samples of
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

	"github.com/stateful-operator/stateful-operator/test/run/place"
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
	say("Finding a cluster")
	found, err := place.Find(ctx)
	if err != nil {
		return err
	}
	where := shown{found}
	say("Deploying the operator")
	if err := where.Operator(ctx); err != nil {
		return err
	}
	say("Applying the sample " + coderFile)
	if err := where.applyCoder(ctx); err != nil {
		return err
	}
	if err := where.coderReady(ctx); err != nil {
		return err
	}
	say("Applying the sample " + mailerFile)
	if err := where.applyMailer(ctx); err != nil {
		return err
	}
	say("A rollout of StatefulSingleton mailer")
	if err := where.rollMailer(ctx); err != nil {
		return err
	}
	say("Applying the sample " + dummyFile)
	if err := where.applyDummy(ctx); err != nil {
		return err
	}
	say("Applying the sample " + ledgerFile)
	if err := where.applyLedger(ctx); err != nil {
		return err
	}
	say("A failover of ReplicatedStatefulSet ledger")
	if err := where.failOver(ctx); err != nil {
		return err
	}
	say("Applying the sample " + shopFile)
	if err := where.upgradeShop(ctx); err != nil {
		return err
	}
	say("A bad upgrade of ExtendedStatefulSet shop: an image that does not exist")
	if err := where.spoilShop(ctx); err != nil {
		return err
	}
	say(fmt.Sprintf("Ready after %s", time.Since(began).Round(time.Second)))
	return where.show(ctx)
}

// shown is the cluster with what is shown in it.
type shown struct{ place.Place }

func say(step string) { fmt.Printf("\n==> %s\n", step) }
