package observer

import (
	"errors"
	"syscall"
	"unsafe"
)

// hungUp reports whether the kernel has received the end of a connection. Its reader may not have read
// so far.
func hungUp(conn syscall.Conn) bool {
	const noMore = 0x2000 // POLLRDHUP
	look := struct {
		fd            int32
		wanted, found int16
	}{wanted: noMore}
	var atOnce syscall.Timespec
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			look.fd = int32(fd)
			_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&look)), 1, uintptr(unsafe.Pointer(&atOnce)), 0, 0, 0)
		})
	}
	return err != nil || look.found != 0
}

// peer returns the PID of the other end of a local connection.
func peer(conn syscall.Conn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *syscall.Ucred
	asked := raw.Control(func(fd uintptr) {
		who, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(asked, err); err != nil {
		return 0, err
	}
	if who.Pid <= 0 {
		return 0, errors.New("it is on another machine")
	}
	return int(who.Pid), nil
}
