package main

import (
	"io"
	"os"
	"strings"

	"github.com/stateful-operator/stateful-operator/gate/script"
)

// install copies this program to dir/gate, and the script next to it. The copies are atomic, even after
// a crash, and can replace a running program.
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

// write creates an executable file with the content of from.
func write(dir, name string, from io.Reader) error {
	temporary, err := os.CreateTemp(dir, ".gate-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename
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
	if err := file.Chmod(0o755); err != nil { // regardless of the umask
		return err
	}
	return file.Sync()
}
