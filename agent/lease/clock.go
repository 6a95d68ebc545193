package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns the time since boot. Unlike Go's own clock, it includes the time in which the machine was
// suspended.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return never // the kernel is older than Linux 2.6.39: every deadline has passed
	}
	return time.Duration(now.Nano())
}
