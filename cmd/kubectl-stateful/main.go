// Command kubectl-stateful is a plugin of kubectl for the kinds of stateful-operator:
// where an object stands and why, rollouts, switchovers, and what a person alone can say,
// such as that a machine is off. It is installed by lying in the PATH.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/command"
)

// What the linker says of a release; see test/release.
var version, commit string

func versionText() string {
	if version == "" {
		return "(unknown)"
	}
	return fmt.Sprintf("%s, commit %s", version, commit)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, versionText(), os.Args[1:])
	stop()
	os.Exit(code)
}
