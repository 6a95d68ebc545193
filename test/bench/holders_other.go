//go:build !linux

package main

import "syscall"

func ownNamespaces() *syscall.SysProcAttr {
	fail("agents require the namespaces of Linux")
	return nil
}
