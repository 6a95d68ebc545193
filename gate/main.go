// A Go program reads its cgroup's CPU limit again and again. One that sleeps
// has no use for that.

//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Gate holds a program back until its pod is granted the start, and then
// becomes it.
//
//	gate install DIR   copies itself to DIR/gate, so that no shell is needed, and
//	                   the script of mode Script beside it
//	gate wait          ends with 0 when the grant is there
//	gate run -- ARGV   waits, and then becomes ARGV
//	gate status        says where the pod stands: 0 granted, 1 waiting
//	gate idle          says so whenever it changes, until it is stopped
//	gate touch         does nothing: whoever runs it wants its image pulled
//
// The grant is the pod's annotation, which the kubelet writes into a file of a
// downwardAPI volume; see grant.go. Nothing that a pod says can name another folder.
//
// It imports next to nothing, because it is copied into every pod that is held:
// neither fmt nor net, at most 2 MiB.
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
	exitSignal        = 128 // plus the signal's number, as shells say it

	usage = `usage: gate install DIR      copy this program to DIR/gate, and its script beside it
       gate wait             wait for the start signal
       gate run -- ARGV...   wait for the start signal, then become ARGV
       gate status           say where this pod stands: exit 0 granted, 1 waiting
       gate idle             say so whenever it changes, until stopped
       gate touch            do nothing`
)

// The program must be started from the first thread of this process: a parent
// death signal, for one, belongs to a thread and would not reach the program
// from another.
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

// obeyWord obeys a command that has no arguments.
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

// signalVariable is set by the linker for tests, and names the folder then.
var signalVariable string

func signalDir() string {
	if dir := os.Getenv(signalVariable); signalVariable != "" && dir != "" {
		return dir
	}
	return defaultSignalDir
}

// runProgram looks for the program before it waits, as the container runtime
// would when it makes the container: an image without it should fail now, while
// the old pod still runs, and not when the old pod is gone.
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

// follow says where the pod stands whenever that changes, until it is stopped.
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
