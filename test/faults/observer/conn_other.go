//go:build !linux

package observer

import (
	"errors"
	"syscall"
)

// hungUp and peer are stubs for systems without nodes, where there are no witnesses.
func hungUp(syscall.Conn) bool { return false }

func peer(syscall.Conn) (int, error) { return 0, errors.ErrUnsupported }
