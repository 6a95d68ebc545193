// Agent runs an application in the members of a ReplicatedStatefulSet, or the program of a StatefulSingleton with
// fencing by a Lease. It is copied into pods with the unmodified image of the application.
//
//	agent install DIR             copies itself to DIR/agent
//	agent TYPE idle               is process 1 of a member: reaps processes, and stops the
//	                              application when the container is stopped
//	agent TYPE idle --lease=NAME --duration=30s
//	                              is also armed while a Lease names its pod, and ends the container if
//	                              it cannot renew the Lease
//	agent TYPE COMMAND [NAME...]  runs a command, see docs/commands.md, or ready, for a readinessProbe
//	agent fenced --epoch=N -- ARGV...
//	                              becomes ARGV when process 1 is armed with epoch N, and exits with 125
//	                              if it is not within 15 s
//	agent run --lease=NAME --duration=15s -- ARGV...
//	                              is process 1 of a StatefulSingleton: runs ARGV while a Lease names
//	                              its pod
//	agent started                 reports whether process 1 has started ARGV, for a startupProbe
//
// The types are etcd, galera, postgresql, rabbitmq and redis. A command that starts the application as primary can
// have the flag --start=TIME.EPOCH before the names, see driver.Start.
//
// Packages: driver has the interface that each application implements, and runs the commands. Each
// application has a package, such as postgresql. Package lease has the protocol of the Lease.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/etcd"
	"github.com/stateful-operator/stateful-operator/agent/galera"
	"github.com/stateful-operator/stateful-operator/agent/postgresql"
	"github.com/stateful-operator/stateful-operator/agent/rabbitmq"
	"github.com/stateful-operator/stateful-operator/agent/redis"
	"github.com/stateful-operator/stateful-operator/gate/selfcopy"
)

const (
	usage = `usage: agent install DIR
       agent etcd|galera|postgresql|rabbitmq|redis idle [--lease=NAME --duration=DURATION]
       agent etcd|galera|postgresql|rabbitmq|redis sequence|status|ready|seed|promote|demote|stop
       agent etcd|galera|postgresql|rabbitmq|redis primary|secondary|leave NAME...
       agent fenced --epoch=N -- ARGV...
       agent run --lease=NAME --duration=DURATION -- ARGV...
       agent started

agent idle with a Lease exits with 125 when it could not renew the Lease in time, or the Lease has a
lower epoch than before

agent fenced becomes ARGV. Otherwise it exits with 125 if process 1 is not armed with epoch N within
15 s, or is armed with a later one, and with 126 or 127 as agent run does

agent run exits with the exit code of ARGV, or 128 plus the number of the signal that ended it or
arrived before its start. Other exit codes: 125 the pod may not run ARGV any longer, 126 ARGV cannot
be executed, 127 ARGV was not found`

	programName = "agent"
)

// applications returns the drivers by type.
var applications = map[string]func(*driver.Log, driver.Start) (driver.Driver, error){
	etcd.Name:       func(log *driver.Log, _ driver.Start) (driver.Driver, error) { return etcd.New(log) },
	galera.Name:     func(log *driver.Log, start driver.Start) (driver.Driver, error) { return galera.New(log, start) },
	postgresql.Name: func(log *driver.Log, _ driver.Start) (driver.Driver, error) { return postgresql.New(log) },
	rabbitmq.Name:   func(log *driver.Log, _ driver.Start) (driver.Driver, error) { return rabbitmq.New(log) },
	redis.Name:      func(log *driver.Log, start driver.Start) (driver.Driver, error) { return redis.New(log, start) },
}

func main() { os.Exit(int(obey(os.Args[1:]))) }

func obey(args []string) driver.Code {
	if len(args) == 2 && args[0] == "install" {
		return install(args[1])
	}
	if len(args) == 1 && args[0] == "started" {
		return started()
	}
	if len(args) > 0 && args[0] == "run" {
		return run(args[1:])
	}
	if len(args) > 0 && args[0] == "fenced" {
		return fenced(args[1:])
	}
	if len(args) < 2 || applications[args[0]] == nil {
		return misused()
	}
	application, name, rest := args[0], args[1], args[2:]
	switch {
	case name == "idle":
		return idle(application, rest)
	case driver.IsCommand(name):
		return command(application, name, rest)
	}
	return misused()
}

func misused() driver.Code {
	fmt.Fprintln(os.Stderr, usage)
	return driver.Unimplemented
}

func install(dir string) driver.Code {
	if err := selfcopy.To(dir, programName); err != nil {
		return fail("cannot install the agent", err)
	}
	return driver.Succeeded
}

func command(application, name string, primaries []string) driver.Code {
	log := driver.CommandLog(application + " " + name)
	var start driver.Start
	var err error
	if len(primaries) > 0 && strings.HasPrefix(primaries[0], driver.StartFlag) {
		start, err = driver.ParseStart(strings.TrimPrefix(primaries[0], driver.StartFlag))
		primaries = primaries[1:]
	}
	var server driver.Driver
	if err == nil {
		server, err = applications[application](log, start)
	}
	if err != nil {
		log.Printf("%v", err)
		return fail(name, err)
	}
	return driver.Run(server, name, primaries, driver.Options{Log: log, Stdout: os.Stdout, Stderr: os.Stderr})
}

func fail(what string, err error) driver.Code {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	return driver.CodeOf(err)
}
