package main

import (
	"io"
	"os"
	"strings"

	"github.com/stateful-operator/stateful-operator/gate/script"
)

// install copies this program to dir/gate, and the script beside it. Whoever looks
// sees a whole copy or none, also after a crash; it may replace one that runs.
func install(dir string) int {
	err := copySelf(dir)
	if err == nil {
		err = write(dir, script.Name, strings.NewReader(script.Text))
	}
	if err != nil {
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
	return write(dir, "gate", self)
}

// write makes an executable file of what is read.
func write(dir, name string, from io.Reader) error {
	temporary, err := os.CreateTemp(dir, ".gate-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // which is gone after the rename
	if err := fill(temporary, from); err != nil {
		temporary.Close()
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), dir+"/"+name)
}

func fill(file *os.File, from io.Reader) error {
	if _, err := io.Copy(file, from); err != nil {
		return err
	}
	if err := file.Chmod(0o755); err != nil { // whatever the umask
		return err
	}
	return file.Sync()
}
