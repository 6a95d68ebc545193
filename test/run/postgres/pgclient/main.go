// Command pgclient writes entries to a PostgreSQL. See package writer. The variables of libpq, such as
// PGPASSWORD, apply.
package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/stateful-operator/stateful-operator/test/run/writer"
)

func main() { writer.Main(open) }

// server is a PostgreSQL. Each entry is a row.
type server struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
	exists bool // the table
}

func open(address string) (writer.Database, error) {
	config, err := pgx.ParseConfig("postgresql://" + address + "/postgres?connect_timeout=1")
	return &server{config: config}, err
}

func (s *server) connected(ctx context.Context) (conn *pgx.Conn, err error) {
	if s.conn == nil {
		if s.conn, err = pgx.ConnectConfig(ctx, s.config); err != nil {
			return nil, err
		}
	}
	return s.conn, nil
}

// Put writes an entry. Its commit is the acknowledgment.
func (s *server) Put(ctx context.Context, n int) (acknowledged bool, err error) {
	conn, err := s.connected(ctx)
	if err != nil {
		return false, err
	}
	if !s.exists {
		if _, err := conn.Exec(ctx, "create table if not exists entries (n int primary key)"); err != nil {
			return false, err
		}
		s.exists = true
	}
	_, err = conn.Exec(ctx, "insert into entries values ($1)", n)
	return err == nil, err
}

func (s *server) Has(ctx context.Context, n int) (there bool, err error) {
	conn, err := s.connected(ctx)
	if err != nil {
		return false, err
	}
	err = conn.QueryRow(ctx, "select exists (select from entries where n = $1)", n).Scan(&there)
	return there, err
}

func (s *server) Close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writer.TryFor)
	defer cancel()
	_ = s.conn.Close(ctx) // it is usually broken
	s.conn = nil
}
