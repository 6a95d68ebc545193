package lease

import (
	"errors"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// watchdog calls a function when its time has come, also if everything else in this process is blocked. It has a
// thread and a timer of the kernel, and no locks.
type watchdog struct{ fd int }

func newWatchdog(bark func()) (*watchdog, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	w := &watchdog{fd: fd}
	go func() {
		runtime.LockOSThread()
		w.wait()
		bark()
	}()
	return w, nil
}

// wait returns when the timer has expired, or cannot be read.
func (w *watchdog) wait() {
	var count [8]byte
	for {
		_, err := unix.Read(w.fd, count[:])
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// arm sets the time since boot at which the timer expires.
func (w *watchdog) arm(at time.Duration) error {
	// A time of 0 would disarm the timer.
	value := unix.NsecToTimespec(max(int64(at), 1))
	return os.NewSyscallError("timerfd_settime",
		unix.TimerfdSettime(w.fd, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: value}, nil))
}

func (w *watchdog) disarm() error {
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(w.fd, 0, &unix.ItimerSpec{}, nil))
}
