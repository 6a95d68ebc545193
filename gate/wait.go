package main

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// caught contains the signals that this process receives while it waits.
type caught struct {
	stop  chan os.Signal // signals to stop the container
	child chan os.Signal // an orphan of the container exited
}

// catchSignals must be called first: the kernel delivers a signal to process 1 of a container only if
// it has a handler.
func catchSignals() caught {
	c := caught{stop: make(chan os.Signal, 8), child: make(chan os.Signal, 1)}
	signal.Notify(c.stop, stopSignals()...)
	// Processes of `kubectl exec` or a probe can be orphaned and become children of process 1. If the
	// gate is not process 1, all children belong to the program.
	if os.Getpid() == 1 {
		signal.Notify(c.child, syscall.SIGCHLD)
	}
	return c
}

// stopSignals returns all signals that an image (STOPSIGNAL) or a pod (stopSignal) can specify to stop
// its container. For example, nginx uses SIGQUIT, postgres SIGINT and httpd SIGWINCH. The runtime sends
// the signal to process 1.
func stopSignals() []os.Signal {
	const last = syscall.Signal(64)
	var signals []os.Signal
	for s := syscall.Signal(1); s <= last; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP: // cannot be caught
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGPROF: // never used to stop a process
		case syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // job control
		case syscall.SIGWINCH:
			if !onTerminal() { // there it reports a change of the window size
				signals = append(signals, s)
			}
		default:
			signals = append(signals, s)
		}
	}
	return signals
}

func onTerminal() bool {
	for _, fd := range []uintptr{0, 1, 2} {
		var settings syscall.Termios
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TCGETS, uintptr(unsafe.Pointer(&settings))); errno == 0 {
			return true
		}
	}
	return false
}

// release resets the signals to their state at the start of the gate. It returns a signal that was
// received before.
func (c caught) release() (os.Signal, bool) {
	signal.Stop(c.stop)
	signal.Stop(c.child)
	select {
	case s := <-c.stop:
		return s, true
	default:
		return nil, false
	}
}

func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && err != syscall.EINTR {
			return
		}
	}
}

// waiter waits for the grant. It contains its clock and its log.
type waiter struct {
	dir    string
	caught caught
	began  time.Time
	tick   <-chan time.Time
	log    func(string)
}

func newWaiter(dir string, c caught) waiter {
	return waiter{
		dir:    dir,
		caught: c,
		began:  time.Now(),
		tick:   time.NewTicker(lookEvery).C,
		log:    say,
	}
}

// await returns 0 when there is a grant, else the exit code. The wait runs on another thread, because
// the first one is reserved for the program, and waking it for each read would double the work. A
// sleeping process does not need two processors.
func await(w waiter) int {
	runtime.GOMAXPROCS(1)
	code := make(chan int)
	go func() { code <- w.await() }()
	return <-code
}

func (w waiter) await() int {
	now, waited := look(w.dir), time.Duration(0)
	if !now.granted() {
		w.log("waiting for the start signal; pod " + podName(w.dir))
	}
	for remind := remindEvery; ; {
		select {
		case s := <-w.caught.stop:
			return stopped(s, w.log)
		default:
		}
		if now.granted() {
			w.log("start signal received (epoch " + now.epoch + ") after " + spell(waited))
			return 0
		}
		if waited >= remind {
			w.log(w.reminder(waited, now))
			remind = waited + remindEvery
		}
		select {
		case s := <-w.caught.stop:
			return stopped(s, w.log)
		case <-w.caught.child:
			reap()
		case t := <-w.tick:
			waited = t.Sub(w.began)
			now = look(w.dir)
		}
	}
}

func (w waiter) reminder(waited time.Duration, now standing) string {
	line := "still waiting for the start signal after " + spell(waited) + "; pod " + podName(w.dir)
	if now.fault != "" {
		line += "; " + now.fault
	}
	return line
}

// stopped returns the exit code after a signal.
func stopped(s os.Signal, log func(string)) int {
	number, name := 0, s.String()
	if s, ok := s.(syscall.Signal); ok {
		number, name = int(s), signalName(s)
	}
	log("got " + name + " before the start signal; the program was not started")
	return exitSignal + number
}

func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGTERM: "SIGTERM",
		syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2", syscall.SIGWINCH: "SIGWINCH",
	}
	if name, ok := names[s]; ok {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}

// spell formats a duration such as 1.2s.
func spell(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}
