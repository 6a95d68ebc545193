// containermaxprocs and updatemaxprocs are off, because they make a Go program poll the CPU limit of
// its cgroup. A sleeping program does not need that.

//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Gate holds a program until its pod has a start grant, and then replaces itself with the program.
//
//	gate install DIR   copies itself to DIR/gate, so that no shell is needed, and
//	                   the script of mode Script next to it
//	gate wait          exits with 0 when there is a grant
//	gate run -- ARGV   waits, and then replaces itself with ARGV
//	gate status        prints the state of the pod: 0 granted, 1 waiting
//	gate idle          prints the state whenever it changes, until it is stopped
//	gate touch         does nothing; it is for pulling the image
//
// The grant is an annotation of the pod, which the kubelet writes into a file of a downwardAPI volume;
// see grant.go. A pod cannot configure another folder.
//
// The gate has few dependencies, because it is copied into every pod that is held. It uses neither fmt
// nor net, and its size is at most 2 MiB.
package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

const (
	defaultSignalDir = "/var/run/signal"

	lookEvery   = 10 * time.Millisecond
	idleEvery   = 250 * time.Millisecond
	remindEvery = time.Minute

	exitFailure       = 1
	exitUsage         = 2
	exitCannotExecute = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the number of the signal, as in shells

	usage = `usage: gate install DIR      copy this program and its script to DIR
       gate wait             wait for the start signal
       gate run -- ARGV...   wait for the start signal, then exec ARGV
       gate status           print the state of this pod: exit 0 granted, 1 waiting
       gate idle             print the state whenever it changes, until stopped
       gate touch            do nothing`
)

// The program must be started from the first thread of this process. For example, the parent death
// signal belongs to a thread, and would not reach the program from another one.
func init() { runtime.LockOSThread() }

func main() { os.Exit(obey(os.Args)) }

func obey(args []string) int {
	switch {
	case len(args) == 2:
		return obeyWord(args[1])
	case len(args) == 3 && args[1] == "install":
		return install(args[2])
	case len(args) > 3 && args[1] == "run" && args[2] == "--":
		return runProgram(signalDir(), args[3:])
	}
	return misused()
}

// obeyWord runs a command without arguments.
func obeyWord(command string) int {
	switch command {
	case "wait":
		return waitOnly(signalDir())
	case "idle":
		return idle(signalDir())
	case "status":
		return status(signalDir())
	case "touch":
		return 0
	}
	return misused()
}

func misused() int {
	tell(syscall.Stderr, usage)
	return exitUsage
}

// signalVariable is the name of an environment variable that contains the folder. It is set by the
// linker, and only for tests.
var signalVariable string

func signalDir() string {
	if dir := os.Getenv(signalVariable); signalVariable != "" && dir != "" {
		return dir
	}
	return defaultSignalDir
}

// runProgram looks up the program before it waits, as a container runtime does when it creates a
// container. If the image does not contain the program, it fails now while the old pod still runs, not
// after the old pod has stopped.
func runProgram(dir string, argv []string) int {
	caught := catchSignals()
	env := environment()
	if _, refused := find(argv[0], env); refused != nil {
		return refused.report()
	}
	if code := await(newWaiter(dir, caught)); code != 0 {
		return code
	}
	return become(argv, env, caught)
}

func waitOnly(dir string) int { return await(newWaiter(dir, catchSignals())) }

func status(dir string) int {
	now := look(dir)
	tell(syscall.Stdout, now.String())
	if !now.granted() {
		return exitFailure
	}
	return 0
}

func idle(dir string) int {
	return follow(dir, catchSignals(), time.NewTicker(idleEvery).C, func(line string) { tell(syscall.Stdout, line) })
}

// follow logs the state of the pod whenever it changes, until it is stopped.
func follow(dir string, c caught, tick <-chan time.Time, log func(string)) int {
	for said := ""; ; {
		if line := look(dir).String(); line != said {
			log(line)
			said = line
		}
		select {
		case <-c.stop:
			return 0
		case <-c.child:
			reap()
		case <-tick:
		}
	}
}
