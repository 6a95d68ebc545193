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

// caught is what reaches this process while it waits.
type caught struct {
	stop  chan os.Signal // whoever wants this container to end
	child chan os.Signal // an orphan of the container ended
}

// catchSignals comes before everything else: to process 1 of a container the
// kernel delivers only signals that it has a handler for.
func catchSignals() caught {
	c := caught{stop: make(chan os.Signal, 8), child: make(chan os.Signal, 1)}
	signal.Notify(c.stop, stopSignals()...)
	// What `kubectl exec` or a probe leaves behind becomes a child of process
	// 1. Anyone else's children would be the program's own.
	if os.Getpid() == 1 {
		signal.Notify(c.child, syscall.SIGCHLD)
	}
	return c
}

// stopSignals are all that an image (STOPSIGNAL) or a pod (stopSignal) may name
// to stop its container by: nginx wants SIGQUIT, postgres SIGINT and httpd
// SIGWINCH, and the runtime sends it to whoever is process 1.
func stopSignals() []os.Signal {
	const last = syscall.Signal(64)
	var signals []os.Signal
	for s := syscall.Signal(1); s <= last; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP: // cannot be caught
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGPROF: // not from anybody
		case syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // job control
		case syscall.SIGWINCH:
			if !onTerminal() { // where it says that the window has changed
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

// release gives the signals back: each is what it was when the gate started. It
// returns one that came before.
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

// waiter is a wait with its clock and its log.
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

// await returns 0 with the grant, else what to exit with. The first thread is
// kept for the program; waking it for each look would double the work. Nor do
// two processors help a process that sleeps.
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

// stopped returns what to exit with after a signal.
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

// spell writes 1.2s.
func spell(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}
