// Command stateful-operator runs the controllers of this project's kinds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stateful-operator/stateful-operator/controllers"
)

// Exit codes: a restart may fix a failure, but never an invalid command line.
const (
	exitFailed = 1
	exitUsage  = 2
)

// The linker sets these for a release; see test/release.
var version, commit string

func main() {
	options, err := controllers.ParseOptions(os.Args[1:], os.Getenv, os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stateful-operator:", err)
		os.Exit(exitUsage)
	}
	options.Build = controllers.NewBuild(version, commit)
	if options.ShowVersion {
		fmt.Println(options.Build)
		return
	}
	logTo(os.Stderr, options)
	limitMemory(os.Getenv)
	if err := run(options); err != nil {
		ctrl.Log.Error(err, "The operator is shutting down")
		os.Exit(exitFailed)
	}
}

// run returns after a signal when all work has stopped, or at once if the lease is lost: another
// replica may already write then, so main must exit.
func run(options controllers.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find a cluster: %w", err)
	}
	managerOptions, err := options.Manager(config)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("create the manager: %w", err)
	}
	if err := controllers.Setup(mgr, options); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// limitMemory sets Go's memory limit from $MEMORY_LIMIT, the container's limit in bytes.
// $GOMEMLIMIT has precedence.
func limitMemory(getenv func(string) string) {
	limit, err := strconv.ParseInt(getenv("MEMORY_LIMIT"), 10, 64)
	if err != nil || limit <= 0 || getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit / 5 * 4) // the rest is for memory outside of Go's heap: the program, the kernel's buffers
}

// logTo sends the logs of the operator and of all libraries to out.
func logTo(out io.Writer, options controllers.Options) {
	settings := &slog.HandlerOptions{Level: options.LogLevel}
	var handler slog.Handler = slog.NewJSONHandler(out, settings)
	if options.LogFormat == "console" {
		handler = slog.NewTextHandler(out, settings)
	}
	// net/http writes its errors to the standard logger.
	slog.SetDefault(slog.New(handler))
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
}
