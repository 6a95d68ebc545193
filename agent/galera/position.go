package galera

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// position is the last transaction of a copy.
type position struct {
	Cluster string // the ID of the history; "" if it is unknown
	Number  int64  // -1 if it is unknown
}

// nowhere is the position of a copy without data.
var nowhere = position{Number: -1}

// known reports whether the copy belongs to a history. It does not while it is being received.
func (p position) known() bool { return p.Cluster != "" }

// String returns the position as the server reads it.
func (p position) String() string {
	if !p.known() {
		return noCluster + ":-1"
	}
	return p.Cluster + ":" + strconv.FormatInt(p.Number, 10)
}

const (
	// stateFile is the file in which Galera stores its position when it is stopped.
	stateFile = "grastate.dat"
	noCluster = "00000000-0000-0000-0000-000000000000"
)

// readState returns the content of stateFile. Its number is -1 if the server was not stopped.
func (s *Server) readState() (position, error) {
	text, err := os.ReadFile(s.data(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nowhere, nil
	}
	if err != nil {
		return position{}, err
	}
	return parseState(string(text))
}

// parseState parses a stateFile. Galera creates it empty.
func parseState(text string) (position, error) {
	p := position{Number: -1}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "uuid":
			if value != noCluster {
				p.Cluster = value
			}
		case "seqno":
			number, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return position{}, fmt.Errorf("%s has seqno %q", stateFile, value)
			}
			p.Number = number
		}
	}
	return p, nil
}

// allowSeed makes the server accept this copy as the first member.
func (s *Server) allowSeed(p position) error {
	if !p.known() {
		return files.Remove(s.data(stateFile))
	}
	text := fmt.Sprintf("# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   %d\nsafe_to_bootstrap: 1\n", p.Cluster, p.Number)
	return files.WriteDurably(s.data(stateFile), []byte(text))
}

// forgetPosition makes the server receive all data: it prefers the position in stateFile to one in its
// arguments.
func (s *Server) forgetPosition() error {
	if err := files.Remove(s.data(stateFile)); err != nil {
		return err
	}
	return files.SyncFolder(s.folder())
}

// position returns the position of a copy that no server uses. It is nowhere if the copy is not complete, or
// if its first start has not succeeded.
func (s *Server) position(ctx context.Context, m mark) (position, error) {
	stored, err := s.readState()
	switch {
	case err != nil, stored.known() && stored.Number >= 0:
		return stored, err
	case !stored.known() && (m.State == stateReceiving || m.isNew()):
		return nowhere, nil
	}
	// Galera also removes its position while it changes a table.
	cluster := m.Cluster
	if stored.known() {
		cluster = stored.Cluster
	}
	found, err := s.recover(ctx, cluster)
	switch {
	case err != nil, found.known():
		return found, err
	case m.State == stateReceiving, m.isNew():
		return nowhere, nil
	case m.Seed: // the server was killed before the first transaction of the generation
		return position{cluster, m.Generation.Begin}, nil
	}
	return nowhere, errors.New("the data has no position: see the log of the container")
}

// recover returns the position in the data of a copy, which must belong to a cluster.
func (s *Server) recover(ctx context.Context, cluster string) (position, error) {
	program, err := s.program(ctx)
	if err != nil {
		return nowhere, err
	}
	if err := s.writeConfiguration(recoverFile, noWeight); err != nil {
		return nowhere, err
	}
	// The program recovers the data, and prints the position to its log.
	cmd := processes.Tool(ctx, program, "--defaults-file="+s.Private.Path(recoverFile), "--wsrep-cluster-address=gcomm://", "--wsrep-recover")
	cmd.Env = append(cmd.Env, s.environment()...)
	log, err := processes.Log(cmd)
	if err != nil {
		return nowhere, fmt.Errorf("recover the position: %w", err)
	}
	found, err := parseRecovered(log)
	if err == nil && found.known() && cluster != "" && found.Cluster != cluster {
		err = driver.Errorf(driver.NotInstalled, "the data belongs to cluster %s, and the copy to %s: to discard the data, delete the claim of %s",
			found.Cluster, cluster, s.Name)
	}
	return found, err
}

var recovered = regexp.MustCompile(`Recovered position: ([0-9a-f-]{36}):(-?\d+)`)

func parseRecovered(log string) (position, error) {
	match := recovered.FindStringSubmatch(log)
	if match == nil {
		return position{}, fmt.Errorf("the program recovers no position: %s", processes.Tail(log))
	}
	number, err := strconv.ParseInt(match[2], 10, 64)
	if err != nil {
		return position{}, err
	}
	if match[1] == noCluster {
		return nowhere, nil
	}
	return position{match[1], number}, nil
}
