package lease

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

func TestForwardedSignals(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		all := forwardedSignals(terminal)
		for s, want := range map[syscall.Signal]bool{
			syscall.SIGTERM: true, syscall.SIGHUP: true, syscall.SIGQUIT: true, syscall.SIGUSR1: true, 34: true, 64: true,
			syscall.SIGWINCH: !terminal,
			syscall.SIGKILL:  false, syscall.SIGSTOP: false, syscall.SIGCHLD: false, syscall.SIGURG: false, syscall.SIGPIPE: false,
			syscall.SIGPROF: false, syscall.SIGTSTP: false, syscall.SIGCONT: false, syscall.SIGTTIN: false, syscall.SIGTTOU: false,
		} {
			if got := slices.Contains(all, os.Signal(s)); got != want {
				t.Errorf("terminal %v: signal %s is forwarded: %v, want %v", terminal, s, got, want)
			}
		}
	}
}

func TestNumberOf(t *testing.T) {
	if got := numberOf(syscall.SIGTERM); got != 15 {
		t.Errorf("SIGTERM is %d", got)
	}
}
