// Package membership keeps the state of a copy of an application that has a list of its members and elects
// its leader itself, such as etcd. A majority of the members has each acknowledged write, so the operator
// must distinguish only copies that may be those of voting members from others.
package membership

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
)

// fileName is the name of the file with the mark.
const fileName = "member.json"

// Mark is the state of a copy. It is written before the data is changed.
type Mark struct {
	State State `json:"state"`
	// Cluster and Member are the IDs of the cluster and the member.
	Cluster string `json:"cluster,omitempty"`
	Member  string `json:"member,omitempty"`
	// Only is the host of the member that was the only one when this member began to join, or empty.
	Only string `json:"only,omitempty"`
}

// State is the state of a copy. It is "" if no command has started a server with it.
type State string

// States of a copy.
const (
	// Creating: a new cluster is being created. It has no data of clients yet.
	Creating State = "being created"
	// Joining: the member is being added to a cluster, and its copy has no data that others lack.
	Joining State = "joining"
	// Promoting: the member receives the data of the cluster, and may vote already.
	Promoting State = "being promoted"
	// Member: the member votes.
	Member State = "member"
	// Left: the member was removed from the cluster.
	Left State = "left"
	// Lost: the member votes, and its data does not exist any more. It is not written.
	Lost State = "without its data"
)

// IsMember reports whether the copy may be one of a member that votes.
func (m Mark) IsMember() bool { return m.State == Member || m.State == Promoting }

// File is the file with the mark of a copy.
type File struct {
	// Folder is the volume. The data is in a folder of it.
	Folder string
	// HasData reports whether the application has written its data, and can start with it.
	HasData func() (bool, error)
	// HasFiles reports whether there may be any data, including data that is not complete. If it is nil, HasData
	// is used.
	HasFiles func() (bool, error)
}

// Path returns the path of the file.
func (f File) Path() string { return filepath.Join(f.Folder, fileName) }

// Read returns the mark of the copy.
func (f File) Read() (m Mark, err error) {
	if err := files.ReadJSON(f.Path(), &m); err != nil || !m.IsMember() {
		return m, err
	}
	found, err := f.HasData()
	if err == nil && !found {
		m.State = Lost
	}
	return m, err
}

// Write writes the mark, and returns when it is on disk.
func (f File) Write(m Mark) error { return files.WriteJSON(f.Path(), m) }

// Status returns the state of the member. If the server does not answer, it is queried again until the time is
// over. A member without a majority has not failed, so an answer must not need one.
func (f File) Status(ctx context.Context, running func() (bool, error), answers func(context.Context) error) (driver.Code, error) {
	for {
		runs, err := running()
		if err != nil {
			return driver.Failed, err
		}
		if !runs {
			return driver.Stopped, nil
		}
		m, err := f.Read()
		if err != nil {
			return driver.Failed, err
		}
		if !m.IsMember() {
			return driver.Failed, ErrIncomplete(m)
		}
		if err = answers(ctx); err == nil {
			return driver.Primary, nil
		}
		if !driver.Pause(ctx) {
			return driver.Failed, fmt.Errorf("the server does not answer: %w", err)
		}
	}
}

// Prepare returns the mark of a copy with which a server is to be started. runs is true if a server of a member
// runs with it already; answers returns an error if that one does not respond.
func (f File) Prepare(running func() (bool, error), answers func() error) (m Mark, runs bool, err error) {
	m, err = f.Read()
	if err != nil {
		return m, false, err
	}
	exists, err := running()
	switch {
	case err != nil:
		return m, false, err
	case exists && m.IsMember():
		return m, true, answers()
	case exists:
		return m, false, ErrIncomplete(m)
	}
	return m, false, f.CheckForeign(m)
}

// ErrIncomplete returns the error of a server that runs with a copy of another state.
func ErrIncomplete(m Mark) error {
	return fmt.Errorf("the server runs, and is no complete member of the cluster: %s", m.State)
}

// Sequence returns 1 if this copy may be one of a member that votes, and 0 if it is not.
func (f File) Sequence() (uint64, error) {
	m, err := f.Read()
	if err != nil {
		return 0, err
	}
	if m.IsMember() {
		return 1, nil
	}
	return 0, f.CheckForeign(m)
}

// CheckForeign returns an error if there is data that no command of the agent has created.
func (f File) CheckForeign(m Mark) error {
	exists := f.HasFiles
	if exists == nil {
		exists = f.HasData
	}
	found, err := exists()
	if err == nil && found && m.State == "" {
		return driver.Errorf(driver.NotInstalled, "%s has data that the agent has not created, and no %s: move the data away, and import it into the set",
			f.Folder, fileName)
	}
	return err
}

// CheckCreate returns an error if the copy belonged to a cluster, which may have data.
func (f File) CheckCreate(m Mark, member string) error {
	if m.Cluster == "" {
		return nil
	}
	return driver.Errorf(driver.NotInstalled, "this copy is %s, and its cluster may have data: to create a new cluster without that data, delete the claim of %s", m.State, member)
}

// CheckCluster returns an error if the copy belongs to another cluster.
func (f File) CheckCluster(m Mark, cluster, member string) error {
	if m.Cluster == "" || m.Cluster == cluster {
		return nil
	}
	return driver.Errorf(driver.NotInstalled, "%s has data of cluster %s, and the other members run cluster %s: to discard the data, delete the claim of %s",
		f.Folder, m.Cluster, cluster, member)
}
