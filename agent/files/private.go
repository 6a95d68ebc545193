package files

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Private is a folder that only its user can read.
type Private string

// OpenPrivate creates the private folder in a folder that is as old as the pod. Other containers of the
// pod can have created it, if they use the same memory.
func OpenPrivate(runDir, name string) (Private, error) {
	p := Private(filepath.Join(runDir, name))
	if err := os.Mkdir(string(p), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("runDir must be writable: %w", err)
	}
	info, err := os.Lstat(string(p))
	if err != nil {
		return "", fmt.Errorf("runDir must be readable: %w", err)
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !known || int(owner.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s belongs to another user, or others can read it: remove it, or the container that created it", p)
	}
	return p, nil
}

// Path returns the path of a file.
func (p Private) Path(name string) string { return filepath.Join(string(p), name) }

// Replace writes a file if its content differs.
func (p Private) Replace(name string, content []byte) (changed bool, err error) {
	if old, err := os.ReadFile(p.Path(name)); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	return true, WriteDurably(p.Path(name), content)
}

// Password returns a random password that is as old as the folder.
func (p Private) Password() (string, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	text, err := p.Once("password", []byte(hex.EncodeToString(random)))
	return string(text), err
}

// Once returns the content of a file, which it creates if it does not exist. Concurrent calls return the same.
func (p Private) Once(name string, content []byte) ([]byte, error) {
	temporary, err := os.CreateTemp(string(p), "."+name+"-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(temporary.Name(), p.Path(name)); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return os.ReadFile(p.Path(name))
}
