package main

import (
	"io"
	"os"
)

// install copies this program to dir/gate. Whoever looks sees the whole copy or
// none, also after a crash; it may replace one that runs.
func install(dir string) int {
	if err := copySelf(dir); err != nil {
		say("cannot install the gate: " + err.Error())
		return exitFailure
	}
	return 0
}

func copySelf(dir string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	temporary, err := os.CreateTemp(dir, ".gate-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // which is gone after the rename
	if err := fill(temporary, self); err != nil {
		temporary.Close()
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), dir+"/gate")
}

func fill(file, from *os.File) error {
	if _, err := io.Copy(file, from); err != nil {
		return err
	}
	if err := file.Chmod(0o755); err != nil { // whatever the umask
		return err
	}
	return file.Sync()
}
