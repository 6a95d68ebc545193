// Command kubectl-stateful is a kubectl plugin for the kinds of stateful-operator. It shows the
// state of an object and its reasons, and manages rollouts, switchovers, and confirmations that
// only an administrator can give, such as that a machine is off. To install it, place it in the
// PATH.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/command"
)

// The linker sets these for a release; see test/release.
var version, commit string

func versionText() string {
	if version == "" {
		return "(unknown)"
	}
	return fmt.Sprintf("%s, commit %s", version, commit)
}

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a plan allocates gigabytes, and keeps some megabytes
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, versionText(), os.Args[1:])
	stop()
	os.Exit(code)
}
