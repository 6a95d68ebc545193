package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/lease"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

const (
	// stopLimit is shorter than the grace period of a member, which is 600 s.
	stopLimit     = 9*time.Minute + 30*time.Second
	killLimit     = 10 * time.Second
	maintainEvery = 15 * time.Second
	maintainLimit = 10 * time.Second
)

// idle is process 1 of a member. It keeps running when a command stops the application. When the
// application ends by itself, it ends the container: the kubelet reports that within about a second, and
// it proves that nothing of the application remains. With flags, it is armed while a Lease names its pod, and reads
// the Lease when fenced sends SIGUSR1. Without flags, Go's runtime ignores that signal.
func idle(application string, args []string) driver.Code {
	flags, err := idleFlags(args)
	if errors.Is(err, errUsage) {
		return misused()
	}
	if err != nil {
		return fail("idle", err)
	}
	log := driver.ProcessLog(application + " idle")
	if os.Getpid() != 1 {
		return fail("idle", driver.Errorf(driver.NotConfigured,
			"the agent must be process 1 of its container, and ends all other processes of it: shareProcessNamespace is not supported"))
	}
	stop, child := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(child, syscall.SIGCHLD)
	server, err := applications[application](log, driver.Start{})
	if err == nil && flags.lease != "" {
		err = lease.Keep(flags.config(lease.LabelMember, log))
	}
	if err != nil {
		return fail("idle", err)
	}
	go maintain(server, log)
	log.Printf("waits for commands")
	for {
		select {
		case <-child:
			if ended(server, log) {
				return driver.Failed
			}
		case s := <-stop:
			log.Printf("%s: stops the application", s)
			stopAll(server, log)
			return driver.Succeeded
		}
	}
}

// idleFlags returns the flags of a member, or none if it has no Lease.
func idleFlags(args []string) (leaseFlags, error) {
	if len(args) == 0 {
		return leaseFlags{}, nil
	}
	return parseFlags(args)
}

// ended releases the children that have ended, and reports whether the application has ended by itself.
func ended(d driver.Driver, log *driver.Log) bool {
	crashed := false
	processes.Reap(func(pid int, _ syscall.WaitStatus) { crashed = crashed || d.Crashed(pid) })
	if !crashed {
		return false
	}
	if changes, err := driver.ChangeRuns(); changes || err != nil {
		return false // the command has ended it, or handles its end
	}
	log.Printf("the application was killed or has crashed: ends the container")
	return true
}

// maintain logs an error only if it changes.
func maintain(d driver.Driver, log *driver.Log) {
	for last := ""; ; time.Sleep(maintainEvery) {
		ctx, cancel := context.WithTimeout(context.Background(), maintainLimit)
		text := ""
		if err := d.Maintain(ctx); err != nil {
			text = err.Error()
		}
		cancel()
		if text != last && text != "" {
			log.Printf("%s", text)
		}
		last = text
	}
}

// stopAll stops the application, and kills what remains. No command can start it again.
func stopAll(d driver.Driver, log *driver.Log) {
	if err := driver.EndCommands(); err != nil {
		log.Printf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.Stop(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			log.Printf("stop: %v", err)
		}
	case <-ctx.Done():
		log.Printf("stop has not ended after %s", stopLimit)
	}
	processes.WaitUntil(killLimit, func() bool {
		_ = syscall.Kill(-1, syscall.SIGKILL) // all processes of the PID namespace, except this one
		return !processes.Reap(nil)
	})
	log.Printf("ends")
}
