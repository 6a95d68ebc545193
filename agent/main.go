// Agent runs an application in the members of a ReplicatedStatefulSet. It is copied into pods with the
// unmodified image of the application.
//
//	agent install DIR             copies itself to DIR/agent
//	agent TYPE idle               is process 1 of a member: reaps processes, and stops the
//	                              application when the container is stopped
//	agent TYPE COMMAND [NAME...]  runs a command, see docs/commands.md, or ready, for a readinessProbe
//
// Packages: driver has the interface that each application implements, and runs the commands. Each
// application has a package, such as postgresql.
package main

import (
	"fmt"
	"os"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql"
	"github.com/stateful-operator/stateful-operator/gate/selfcopy"
)

const (
	usage = `usage: agent install DIR
       agent postgresql idle
       agent postgresql sequence|status|ready|seed|promote|demote|stop
       agent postgresql primary|secondary NAME...`

	programName = "agent"
)

func main() { os.Exit(int(obey(os.Args[1:]))) }

func obey(args []string) driver.Code {
	if len(args) == 2 && args[0] == "install" {
		return install(args[1])
	}
	if len(args) < 2 || args[0] != postgresql.Name {
		return misused()
	}
	name, primaries := args[1], args[2:]
	switch {
	case name == "idle" && len(primaries) == 0:
		return idle()
	case driver.IsCommand(name):
		return command(name, primaries)
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

func command(name string, primaries []string) driver.Code {
	log := driver.CommandLog(postgresql.Name + " " + name)
	server, err := postgresql.New(log)
	if err != nil {
		log.Printf("%v", err)
		return fail(name, err)
	}
	return driver.Run(server, name, primaries, driver.Options{
		LockDir: server.LockDir(), Limit: server.StartLimit(), Log: log, Stdout: os.Stdout, Stderr: os.Stderr,
	})
}

func fail(what string, err error) driver.Code {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	return driver.CodeOf(err)
}
