package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settings come from the environment, which the hooks of a container share with its process 1.
type settings struct {
	dir        string
	socket     string
	listen     string
	name, uid  string // of the pod
	self       string // its address among peers, if it is not its name
	service    string
	peers      []string
	members    int
	acks       int // number of followers that must have an entry
	journal    string
	knobs      string
	ackTimeout time.Duration
	joinWithin time.Duration
	handOffFor time.Duration
}

func readSettings() settings {
	dir := cmp.Or(os.Getenv("LEDGER_DIR"), "/data")
	host, _ := os.Hostname()
	s := settings{
		dir:        dir,
		socket:     cmp.Or(os.Getenv("LEDGER_SOCKET"), filepath.Join(dir, "control.sock")),
		listen:     cmp.Or(os.Getenv("LEDGER_LISTEN"), ":7070"),
		name:       cmp.Or(os.Getenv("POD_NAME"), host),
		uid:        os.Getenv("POD_UID"),
		self:       os.Getenv("LEDGER_SELF"),
		service:    os.Getenv("SERVICE_NAME"),
		peers:      strings.FieldsFunc(os.Getenv("LEDGER_PEERS"), func(r rune) bool { return r == ',' || r == ' ' }),
		journal:    os.Getenv("LEDGER_JOURNAL"),
		knobs:      os.Getenv("LEDGER_KNOBS"),
		members:    variable("LEDGER_MEMBERS", "0", strconv.Atoi),
		ackTimeout: variable("LEDGER_ACK_TIMEOUT", "5s", time.ParseDuration),
		joinWithin: variable("LEDGER_JOIN_TIMEOUT", "30s", time.ParseDuration),
		handOffFor: variable("LEDGER_HANDOFF_TIMEOUT", "5s", time.ParseDuration),
	}
	s.acks = variable("LEDGER_ACKS", strconv.Itoa(s.members/2), strconv.Atoi)
	return s
}

// variable returns an environment variable, and exits the program if it is invalid or below 0.
func variable[T int | time.Duration](name, fallback string, parse func(string) (T, error)) T {
	value, err := parse(cmp.Or(os.Getenv(name), fallback))
	if err == nil && value < 0 {
		err = errors.New("it is below 0")
	}
	if err != nil {
		need(fmt.Errorf("%s: %w", name, err))
	}
	return value
}

// path returns the path of a file in the data directory.
func (s settings) path(name string) string { return filepath.Join(s.dir, name) }

// serverSocket returns the socket on which the server receives orders from process 1.
func (s settings) serverSocket() string { return s.socket + ".server" }

// address returns the address of a peer. The names in hooks' arguments have no port.
func (s settings) address(peer string) string {
	if _, _, err := net.SplitHostPort(peer); err == nil {
		return peer
	}
	_, port, _ := net.SplitHostPort(s.listen)
	return net.JoinHostPort(peer, port)
}

// isSelf reports whether a peer's address is this member's own. The primaries in a hook's arguments
// include its own pod if it is one.
func (s settings) isSelf(peer string) bool {
	host, _, err := net.SplitHostPort(peer)
	if err != nil {
		host = peer
	}
	return peer == s.self || host == s.name || strings.HasPrefix(host, s.name+".")
}

// others returns the addresses of the peers without its own.
func (s settings) others(peers []string) []string {
	var addresses []string
	for _, peer := range peers {
		if !s.isSelf(peer) {
			addresses = append(addresses, s.address(peer))
		}
	}
	return addresses
}

// everybody returns the addresses of all possible primaries: LEDGER_PEERS, or all pods of the headless
// service. Its own pod may be included and reports that it is not primary.
func (s settings) everybody() []string {
	if len(s.peers) > 0 || s.service == "" {
		return s.others(s.peers)
	}
	hosts, err := net.LookupHost(s.service)
	if err != nil {
		return nil // retried soon
	}
	return s.others(hosts)
}
