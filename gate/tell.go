package main

import (
	"syscall"
	"unsafe"
)

// say writes a line with the prefix of the gate to the log of the program.
func say(line string) { tell(syscall.Stderr, "StatefulSingleton: "+line) }

// tell writes a line to a file descriptor. It drops the line if the descriptor is not writable within
// 50 ms, because a log that is not read must not delay a stop or the program.
func tell(fd int, line string) {
	const most = 4000 // a writable pipe accepts 4096 bytes at once
	if len(line) > most {
		line = line[:most] + "..."
	}
	if !takes(fd) {
		return
	}
	for rest := []byte(line + "\n"); len(rest) > 0; {
		n, err := syscall.Write(fd, rest)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return
		}
		rest = rest[n:]
	}
}

func takes(fd int) bool {
	const pollOut = 0x4
	const moment = 50_000_000 // nanoseconds
	wanted := struct {
		fd             int32
		events, result int16
	}{fd: int32(fd), events: pollOut}
	for {
		limit := syscall.NsecToTimespec(moment)
		n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&wanted)), 1,
			uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		if errno != syscall.EINTR {
			return errno != 0 || n > 0
		}
	}
}
