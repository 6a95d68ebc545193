package lease

import (
	"os"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Exit codes of process 1. Otherwise it exits with the exit code of the program.
const (
	ExitFailure       = 1
	ExitFenced        = 125 // the container may not run the program any longer, or WaitUntilArmed has failed
	ExitCannotExecute = 126
	ExitNotFound      = 127
	exitSignal        = 128 // plus the number of the signal, as in shells
)

const (
	lookWaiting = 250 * time.Millisecond // for a start grant
	lookRunning = time.Second
	remindEvery = time.Minute
)

// runner runs a program as the steps of a Holder require. One goroutine owns it.
type runner struct {
	*keeper
	path    string // of the program
	argv    []string
	signals signals
	began   time.Duration

	killed chan bool
	look   *time.Ticker
	remind *time.Ticker

	pid  int // of the program, or 0
	code int // of the program
}

// Run runs a program as process 1 of a container while the Lease names the pod, and returns the exit code. It
// does not return when the container must end at once.
func Run(config Config, path string, argv []string) int {
	caught := catchSignals()
	defer config.Log.Flush()
	klog.SetLogger(logr.Discard()) // it would write to the log of the program, and wait
	keeper, err := newKeeper(config, NewHolder)
	if err != nil {
		config.Log.Printf("%v", err)
		return ExitFailure
	}
	r := &runner{
		keeper: keeper, path: path, argv: argv, signals: caught, began: sinceBoot(), killed: make(chan bool, 1),
		look: time.NewTicker(lookWaiting), remind: time.NewTicker(remindEvery),
	}
	config.Log.Printf("waiting for Lease %s as %s", r.lease, r.holder.identity)
	return r.run()
}

func (r *runner) run() int {
	r.lookForGrant()
	for {
		step := r.holder.Next(sinceBoot())
		var code int
		var done bool
		switch step.Operation {
		case Wait:
			code, done = r.wait(step.At)
		case Start:
			code, done = r.start()
		case Fence:
			fence(r.Log, step.Reason)
		case Finish:
			code, done = r.code, true
		default:
			r.send(step)
		}
		if done {
			return code
		}
	}
}

// wait handles one event. It returns an exit code if the container must end.
func (r *runner) wait(until time.Duration) (code int, done bool) {
	timer := time.NewTimer(until - sinceBoot())
	defer timer.Stop()
	select {
	case a := <-r.answers:
		r.answered(a)
	case c := <-r.watcher.changes:
		r.changed(c)
	case s := <-r.signals.forwarded:
		return r.signaled(s)
	case <-r.signals.child:
		r.reap()
	case all := <-r.killed:
		return r.ended(all)
	case <-r.look.C:
		r.lookForGrant()
	case <-r.remind.C:
		r.logWait()
	case <-timer.C:
	}
	return 0, false
}

// signaled forwards a signal to the program. A program that was not started is not started any more.
func (r *runner) signaled(s os.Signal) (code int, done bool) {
	switch {
	case r.pid > 0:
		if s, ok := s.(syscall.Signal); ok {
			_ = syscall.Kill(r.pid, s) // it may have ended
		}
	case r.holder.IsWaiting():
		r.Log.Printf("received signal %d (%s) while waiting: the program was not started", numberOf(s), s)
		return exitSignal + numberOf(s), true
	}
	return 0, false
}

// start starts the program. The watchdog is armed before.
func (r *runner) start() (code int, done bool) {
	select {
	case s := <-r.signals.forwarded:
		return r.signaled(s)
	default:
	}
	environment, waited := environment(), (sinceBoot() - r.began).Round(time.Millisecond)
	if !r.holder.IsReleased() {
		r.arm()
		epoch := r.holder.Known().Epoch
		environment = withLease(environment, r.lease, epoch)
		r.Log.Printf("holds Lease %s (epoch %d) after %s: starts the program", r.lease, epoch, waited)
	}
	pid, err := start(r.path, r.argv, environment)
	if err != nil {
		r.Log.Printf("%v", err)
		return ExitCannotExecute, true
	}
	r.pid = pid
	r.holder.Started()
	r.look.Reset(lookRunning)
	if err := setComm(commRunning); err != nil {
		r.Log.Printf("%v", err)
	}
	return 0, false
}

// reap releases the children that have ended. When the program is one of them, all other processes are killed.
// Renewals continue meanwhile.
func (r *runner) reap() {
	processes.Reap(func(pid int, status syscall.WaitStatus) {
		if pid != r.pid {
			return
		}
		r.pid, r.code = 0, exitCode(status)
		go func() { r.killed <- killRest() }()
	})
}

// ended is called when the other processes were killed. If some remain, the end of process 1 is the only proof.
func (r *runner) ended(all bool) (code int, done bool) {
	if !all {
		r.Log.Printf("processes remain %s after SIGKILL: ends the container", killLimit)
		return r.code, true
	}
	r.holder.Ended(sinceBoot())
	r.cancel()
	return 0, false
}

// lookForGrant releases the program from the Lease if there is a start grant: its object was deleted.
func (r *runner) lookForGrant() {
	if r.holder.IsReleased() {
		return
	}
	epoch := r.Folders.grant()
	if epoch == "" {
		return
	}
	if err := r.watchdog.disarm(); err != nil {
		r.Log.Printf("%v", err)
		return
	}
	r.holder.Release()
	r.cancel()
	r.watcher.stop()
	r.look.Stop()
	r.Log.Printf("received start grant %s: runs the program without the Lease from now on", epoch)
}

func (r *runner) logWait() {
	if !r.holder.IsWaiting() {
		r.remind.Stop()
		return
	}
	r.Log.Printf("still waiting for Lease %s after %s; its holder is %q", r.lease,
		(sinceBoot() - r.began).Round(time.Second), r.holder.Known().Holder)
}
