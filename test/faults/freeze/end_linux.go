package freeze

import (
	"os/exec"
	"syscall"
)

// endWithUs makes the kernel kill a process when this one ends for any reason. Otherwise a frozen
// process would stay.
func endWithUs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
