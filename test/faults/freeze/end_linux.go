package freeze

import (
	"os/exec"
	"syscall"
)

// endWithUs has a process killed when this one ends, however that comes: nobody else
// would wake one that is frozen.
func endWithUs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
