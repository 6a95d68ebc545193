package etcd

import (
	"os"
	"path/filepath"

	"github.com/stateful-operator/stateful-operator/agent/files"
)

// markFile is the file with the mark of a copy.
const markFile = "member.json"

// mark is the state of a copy. It is written before the data is changed.
type mark struct {
	State state `json:"state"`
	// Cluster and Member are the IDs that etcd has assigned.
	Cluster string `json:"cluster,omitempty"`
	Member  string `json:"member,omitempty"`
}

// state is the state of a copy. It is "" if no command has started a server with it.
type state string

const (
	// stateCreating: a new cluster is being created. It has no data of clients yet.
	stateCreating state = "being created"
	// stateJoining: the member is being added to a cluster, and does not vote.
	stateJoining state = "joining"
	// statePromoting: the member receives the data of the cluster, and may vote already.
	statePromoting state = "being promoted"
	// stateMember: the member votes.
	stateMember state = "member"
	// stateLeft: the member was removed from the cluster.
	stateLeft state = "left"
	// stateLost: the member votes, and its data does not exist any more. It is not written.
	stateLost state = "without its data"
)

// isMember reports whether the copy may be one of a member that votes.
func (m mark) isMember() bool { return m.State == stateMember || m.State == statePromoting }

func (s *Server) markPath() string { return filepath.Join(s.config.DataDir, markFile) }

// mark returns the mark of the copy.
func (s *Server) mark() (m mark, err error) {
	if err := files.ReadJSON(s.markPath(), &m); err != nil || !m.isMember() {
		return m, err
	}
	found, err := s.hasData()
	if err == nil && !found {
		m.State = stateLost
	}
	return m, err
}

// setMark writes the mark, and returns when it is on disk.
func (s *Server) setMark(m mark) error { return files.WriteJSON(s.markPath(), m) }

// hasData reports whether etcd has written its log.
func (s *Server) hasData() (bool, error) {
	found, err := filepath.Glob(filepath.Join(s.folder(), "member", "wal", "*.wal"))
	return len(found) > 0, err
}

// discard removes the data of the copy. The mark must be that of a copy without data.
func (s *Server) discard() error {
	if err := os.RemoveAll(s.folder()); err != nil {
		return err
	}
	return files.SyncFolder(s.config.DataDir)
}
