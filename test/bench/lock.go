package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockRun makes sure that no other run goes on: it would take our cluster
// down, and both would measure each other. The kernel drops the lock when its
// owner ends, however that comes.
func lockRun() (unlock func(), err error) {
	path := filepath.Join(os.TempDir(), "stateful-operator-bench.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.New("another run of the benchmarks goes on")
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}
