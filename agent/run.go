package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/lease"
)

const (
	minDuration = 10 * time.Second
	maxDuration = 600 * time.Second
)

// leaseFlags are the flags of run, and of idle with a Lease.
type leaseFlags struct {
	lease    string
	duration time.Duration
}

// run is process 1 of the container of a StatefulSingleton with fencing by a Lease. It runs a program while the
// Lease names its pod.
func run(args []string) driver.Code {
	end := slices.Index(args, "--")
	if end < 0 || end == len(args)-1 {
		return misused()
	}
	flags, err := parseFlags(args[:end])
	if errors.Is(err, errUsage) {
		return misused()
	}
	if err == nil && os.Getpid() != 1 {
		err = driver.Errorf(driver.NotConfigured,
			"the agent must be process 1 of its container, and ends all other processes of it: "+
				"shareProcessNamespace and hostPID are not supported")
	}
	if err != nil {
		return fail("run", err)
	}
	argv := args[end+1:]
	path, code, err := lease.LookUp(argv[0])
	if err != nil {
		fail("run", err)
		return driver.Code(code)
	}
	return driver.Code(lease.Run(flags.config(lease.LabelSingleton, driver.ProcessLog("run")), path, argv))
}

// config returns the configuration of process 1 for a Lease with a label.
func (f leaseFlags) config(label string, log *driver.Log) lease.Config {
	return lease.Config{
		Name: f.lease, Label: label, Duration: f.duration, Folders: lease.DefaultFolders(),
		Log: lease.NewLog(func(line string) { log.Printf("%s", line) }),
	}
}

var errUsage = errors.New("incorrect arguments")

func parseFlags(args []string) (leaseFlags, error) {
	var f leaseFlags
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.lease, "lease", "", "the name of the Lease")
	set.DurationVar(&f.duration, "duration", 0, "the duration of the Lease")
	if err := set.Parse(args); err != nil {
		return leaseFlags{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.lease == "" || set.NArg() > 0 {
		return leaseFlags{}, errUsage
	}
	isAllowed := f.duration >= minDuration && f.duration <= maxDuration
	if !isAllowed || f.duration%time.Second != 0 {
		return leaseFlags{}, driver.Errorf(driver.NotConfigured, "--duration=%s must be whole seconds from %s to %s",
			f.duration, minDuration, maxDuration)
	}
	return f, nil
}

// started is a startupProbe. It succeeds when process 1 has started the program.
func started() driver.Code {
	ok, err := lease.IsStarted(lease.CommOfProcess1)
	switch {
	case err != nil:
		return fail("started", err)
	case !ok:
		return driver.Failed
	}
	return driver.Succeeded
}
