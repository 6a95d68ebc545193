package driver

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// A set runs one start at a time, so a command secondary that waits for the copy of a large database
// would delay a failover. Such a copy is made by another process, which continues after the command.
// Meanwhile status returns Degraded.

// Copier is a Driver whose secondary makes copies with CopyInBackground.
type Copier interface {
	Driver
	// Copy makes the member a secondary, as Secondary does, and returns when that is complete.
	Copy(ctx context.Context, primaries []string) error
}

const (
	copyCommand = "copy"
	// copyLimit is the time for the largest copy.
	copyLimit = 7 * 24 * time.Hour

	// HandOff is the time after which a command secondary returns while data is copied.
	HandOff = 15 * time.Second
	// lateHandOff is the time after which it returns in any case. It is longer than a start without
	// progress takes to fail.
	lateHandOff = 90 * time.Second
)

func runCopy(ctx context.Context, d Driver, primaries []string, _ io.Writer) error {
	copier, ok := d.(Copier)
	if !ok {
		return Errorf(Unimplemented, "this application copies without the agent")
	}
	return copier.Copy(ctx, primaries)
}

// CopyInBackground runs Copy in another process. It returns its result, or nil if it continues: after
// HandOff while copying returns true, and in any case after 90 s. errorFile receives its error.
func CopyInBackground(application string, primaries []string, errorFile string, log *Log, copying func() bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	failure, err := os.Create(errorFile)
	if err != nil {
		return err
	}
	defer failure.Close()
	cmd := exec.Command(self, append([]string{application, copyCommand}, primaries...)...)
	cmd.Dir = "/"
	cmd.Stderr = failure
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	began := time.Now()
	for waits := true; waits; {
		select {
		case err = <-ended:
			waits = false
		case <-time.After(retryEvery):
			took := time.Since(began)
			if took > lateHandOff || (took > HandOff && copying()) {
				log.Printf("continues in the background")
				return nil
			}
		}
	}
	if err == nil {
		return nil
	}
	text, readErr := os.ReadFile(errorFile)
	if readErr != nil || len(text) == 0 {
		return err
	}
	return Errorf(Code(max(1, cmd.ProcessState.ExitCode())), "%s", strings.TrimSpace(string(text)))
}

// Copying reports whether a copy is being made in the background.
func Copying() (bool, error) {
	found, err := copies()
	return len(found) > 0, err
}

func copies() ([]processes.Process, error) {
	return commandsThat(func(name string) bool { return name == copyCommand })
}
