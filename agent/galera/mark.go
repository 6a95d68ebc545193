package galera

import (
	"path/filepath"

	"github.com/stateful-operator/stateful-operator/agent/files"
)

// markFile is the file with the mark of a copy.
const markFile = "galera.json"

// mark is the origin of a copy. It is written before the data is created, and before a generation begins.
type mark struct {
	State state `json:"state"`
	// Cluster is the ID of the history. It is "" until the first start has succeeded.
	Cluster    string     `json:"cluster,omitempty"`
	Generation generation `json:"generation"`
	// Seed is true if the generation began with this copy.
	Seed bool `json:"seed,omitempty"`
}

// state is the state of a copy. It is "" if no command has started a server with it.
type state string

const (
	// stateCreating: the database is being created. It has no data of clients yet.
	stateCreating state = "being created"
	// stateReceiving: the copy receives missing transactions, or all data.
	stateReceiving state = "being received"
	// stateMember: the copy is complete.
	stateMember state = "member"
)

// hasData reports whether the copy can have data of clients.
func (m mark) hasData() bool { return m.State == stateMember || m.State == stateReceiving }

// isNew reports whether the database was created, and its first start has not succeeded.
func (m mark) isNew() bool { return m.State == stateMember && m.Cluster == "" }

func (s *Server) markPath() string { return filepath.Join(s.config.DataDir, markFile) }

// mark returns the mark of the copy.
func (s *Server) mark() (m mark, err error) {
	err = files.ReadJSON(s.markPath(), &m)
	return m, err
}

// setMark writes the mark, and returns when it is on disk.
func (s *Server) setMark(m mark) error { return files.WriteJSON(s.markPath(), m) }
