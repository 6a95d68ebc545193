// Package files writes files so that they survive a crash of the machine, and keeps private files.
package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteDurably replaces a file, and returns when it is on disk.
func WriteDurably(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(0o600), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// WriteJSON replaces a file by a value, and returns when it is on disk.
func WriteJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return WriteDurably(path, text)
}

// ReadJSON reads a value that WriteJSON has written. It does not change the value if the file does not exist.
func ReadJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// SyncFolder returns when the entries of a folder are on disk.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// SyncAll returns when all files of the file system of a folder are on disk.
func SyncAll(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return unix.Syncfs(int(folder.Fd()))
}

// RemoveFolder removes a folder with its content, if it exists, and returns when that is on disk. Its parent must
// exist.
func RemoveFolder(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// Remove removes a file, if it exists.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
