// Command client writes entries to an etcd. See package writer. ETCD_PASSWORD is the password of root.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/stateful-operator/stateful-operator/agent/etcd/gateway"
	"github.com/stateful-operator/stateful-operator/test/run/writer"
)

func main() { writer.Main(open) }

// server is an etcd. Each entry has a separate key.
type server struct {
	address string
	client  *gateway.Client
}

func open(address string) (writer.Database, error) { return &server{address: address}, nil }

func (s *server) connected() *gateway.Client {
	if s.client == nil {
		s.client = gateway.New(s.address, os.Getenv("ETCD_PASSWORD"))
	}
	return s.client
}

// Put writes an entry. It is acknowledged when a majority has it.
func (s *server) Put(ctx context.Context, n int) (acknowledged bool, err error) {
	err = s.connected().Put(ctx, key(n), strconv.Itoa(n))
	return err == nil, err
}

func (s *server) Has(ctx context.Context, n int) (bool, error) {
	is, err := s.connected().Get(ctx, key(n))
	return is == strconv.Itoa(n), err
}

func key(n int) string { return fmt.Sprintf("entry:%09d", n) }

// Close ends the connection, so that the next one can reach another member.
func (s *server) Close() {
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}
