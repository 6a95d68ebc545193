package postgresql

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
)

// The mark is a file next to the data folder. It exists while a copy is being made, and after that
// failed. Its content is the operation.
const (
	markSuffix = ".incomplete"

	beingCreated  = "create" // the copy never had data of a user
	beingCopied   = "copy"
	beingRewound  = "rewind"
	versionFile   = "PG_VERSION"
	standbySignal = "standby.signal"
)

func (s *Server) markFile() string { return s.config.DataDir + markSuffix }

// mark returns the content of the mark, or an empty text if there is none.
func (s *Server) mark() (string, error) {
	text, err := os.ReadFile(s.markFile())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if len(text) == 0 { // the machine crashed before the content was written
		return beingCopied, nil
	}
	return strings.TrimSpace(string(text)), nil
}

// checkNoMark returns an error if a server runs on a copy that is not complete: a command was killed.
func (s *Server) checkNoMark() error {
	mark, err := s.mark()
	if err == nil && mark != "" {
		err = fmt.Errorf("the copy is incomplete (%s)", mark)
	}
	return err
}

// setMark is on disk when it returns.
func (s *Server) setMark(operation string) error {
	return files.WriteDurably(s.markFile(), []byte(operation+"\n"))
}

// removeMark returns when the removal is on disk. All changes of the copy must be on disk before.
func (s *Server) removeMark() error {
	if err := files.Remove(s.markFile()); err != nil {
		return err
	}
	return files.SyncFolder(filepath.Dir(s.markFile()))
}

// copyState is the state of the data folder without a running server.
type copyState int

const (
	copyMissing    copyState = iota // there is no data
	copyIncomplete                  // there is a mark
	copyPresent
)

// copyState returns an error for data that is not a copy of PostgreSQL, because it must not be deleted.
// major is the version of a present copy.
func (s *Server) copyState() (state copyState, major string, err error) {
	mark, err := s.mark()
	if err != nil {
		return 0, "", err
	}
	if mark != "" {
		return copyIncomplete, "", nil
	}
	entries, err := os.ReadDir(s.config.DataDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, "", err
	}
	if len(entries) == 0 {
		return copyMissing, "", nil
	}
	major, err = s.version()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, "", err
	}
	if major == "" {
		return 0, "", driver.Errorf(driver.NotInstalled, "%s contains files, such as %s, but is not a data folder of PostgreSQL",
			s.config.DataDir, entries[0].Name())
	}
	return copyPresent, major, nil
}

// deleteData deletes the data folder. There must be a mark.
func (s *Server) deleteData() error {
	if mark, err := s.mark(); err != nil || mark == "" {
		return fmt.Errorf("%s is not marked for deletion (%w)", s.config.DataDir, err)
	}
	if err := os.RemoveAll(s.config.DataDir); err != nil {
		return err
	}
	return files.SyncFolder(filepath.Dir(s.config.DataDir))
}
