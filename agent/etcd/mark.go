package etcd

import (
	"path/filepath"

	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/membership"
)

// record returns the file with the mark of the copy.
func (s *Server) record() membership.File {
	return membership.File{Folder: s.config.DataDir, HasData: s.hasData}
}

// hasData reports whether etcd has written its log.
func (s *Server) hasData() (bool, error) {
	found, err := filepath.Glob(filepath.Join(s.folder(), "member", "wal", "*.wal"))
	return len(found) > 0, err
}

// discard removes the data of the copy. The mark must be that of a copy without data.
func (s *Server) discard() error { return files.RemoveFolder(s.folder()) }
