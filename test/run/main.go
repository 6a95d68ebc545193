// Command run shows the operator at work: it boots the local cluster (or uses
// KUBECONFIG's), deploys the operator into it from its image, applies the
// sample, waits until it is Ready, and says what to try next.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
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
	where, err := findPlace(ctx)
	if err != nil {
		return err
	}
	say("Building the images of the operator and of the sample")
	operator, coder, err := where.images(ctx)
	if err != nil {
		return err
	}
	say("Deploying the operator")
	if err := deploy(ctx, where.kubeconfig, operator); err != nil {
		return err
	}
	if err := where.operatorReady(ctx); err != nil {
		return err
	}
	say("Applying the sample " + sampleFile)
	if err := where.applySample(ctx, coder); err != nil {
		return err
	}
	if err := where.sampleReady(ctx); err != nil {
		return err
	}
	say(fmt.Sprintf("Ready after %s", time.Since(began).Round(time.Second)))
	return where.show(ctx)
}

// deploy is `make deploy`, so that there is one way to do it.
func deploy(ctx context.Context, kubeconfig, image string) error {
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "deploy", "IMAGE="+image)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("deploying the operator: %w", err)
	}
	return nil
}

func say(step string) { fmt.Printf("\n==> %s\n", step) }
