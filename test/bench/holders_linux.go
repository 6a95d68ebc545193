package main

import "syscall"

// ownNamespaces returns the attributes that make a process the first one of a PID namespace with its own mounts.
func ownNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
}
