package lease

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// signals are the signals that process 1 receives.
type signals struct {
	forwarded chan os.Signal // for the program
	child     chan os.Signal // a child has ended
}

// catchSignals must be called first: the kernel delivers a signal to process 1 only if it has a handler.
func catchSignals() signals {
	s := signals{forwarded: make(chan os.Signal, 64), child: make(chan os.Signal, 1)}
	signal.Notify(s.forwarded, forwardedSignals(onTerminal())...)
	signal.Notify(s.child, syscall.SIGCHLD)
	return s
}

// forwardedSignals returns all signals that an image (STOPSIGNAL) or a pod (stopSignal) can specify to stop its
// container, and those that control a program, such as SIGHUP.
func forwardedSignals(terminal bool) []os.Signal {
	const last = syscall.Signal(64)
	var all []os.Signal
	for s := syscall.Signal(1); s <= last; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP: // cannot be caught
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGPROF: // for this process
		case syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // job control
		case syscall.SIGWINCH:
			if !terminal { // the kernel sends it to the program, which is in the foreground
				all = append(all, s)
			}
		default:
			all = append(all, s)
		}
	}
	return all
}

func onTerminal() bool {
	for fd := range 3 {
		if isTerminal(fd) {
			return true
		}
	}
	return false
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// numberOf returns the number of a signal.
func numberOf(s os.Signal) int {
	if s, ok := s.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}
