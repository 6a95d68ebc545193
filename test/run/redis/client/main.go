// Command client writes entries to a Redis. See package writer. REDIS_PASSWORD is the password, if any.
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/test/run/writer"
)

// ackFor is how long a write waits for a second member.
const ackFor = 500 * time.Millisecond

func main() { writer.Main(open) }

// server is a Redis. Each entry has a separate key.
type server struct {
	client *redis.Client
	conn   *redis.Conn
}

func open(address string) (writer.Database, error) {
	redis.SetLogger(silent{}) // failures are counted
	return &server{client: redis.NewClient(&redis.Options{
		Addr: address, Password: os.Getenv("REDIS_PASSWORD"), MaxRetries: -1, DialerRetries: 1, DialTimeout: writer.TryFor, ReadTimeout: writer.TryFor, WriteTimeout: writer.TryFor,
	})}, nil
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Put writes an entry. It is acknowledged when a second member has it.
func (s *server) Put(ctx context.Context, n int) (acknowledged bool, err error) {
	if s.conn == nil {
		s.conn = s.client.Conn()
	}
	if err := s.conn.Set(ctx, key(n), n, 0).Err(); err != nil {
		return false, err
	}
	copies, err := s.conn.Wait(ctx, 1, ackFor).Result()
	return copies > 0, err
}

func (s *server) Has(ctx context.Context, n int) (bool, error) {
	is, err := s.client.Get(ctx, key(n)).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return is == strconv.Itoa(n), err
}

func key(n int) string { return "entry:" + strconv.Itoa(n) }

func (s *server) Close() {
	if s.conn != nil {
		_ = s.conn.Close() // it is usually broken
		s.conn = nil
	}
}
