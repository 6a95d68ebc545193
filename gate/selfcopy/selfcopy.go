// Package selfcopy copies the running program into containers. It uses few packages of the standard
// library, because the gate must be small.
package selfcopy

import (
	"io"
	"os"
)

// To copies this program to dir/name, see Write.
func To(dir, name string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	return Write(dir, name, self)
}

// Write creates an executable file with the content of from. The copy is atomic, even after a crash, and
// can replace a running program.
func Write(dir, name string, from io.Reader) error {
	temporary, err := os.CreateTemp(dir, "."+name+"-*")
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
