// Command client writes entries to a MariaDB. See package writer. MARIADB_PASSWORD is the password of root.
package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/stateful-operator/stateful-operator/test/run/writer"
)

func main() { writer.Main(open) }

// server is a MariaDB. Each entry has a separate row.
type server struct {
	address string
	db      *sql.DB
}

func open(address string) (writer.Database, error) { return &server{address: address}, nil }

func (s *server) connected(ctx context.Context) (*sql.DB, error) {
	if s.db != nil {
		return s.db, nil
	}
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = "root", os.Getenv("MARIADB_PASSWORD"), "tcp", s.address
	c.Timeout, c.ReadTimeout, c.WriteTimeout = writer.TryFor, writer.TryFor, writer.TryFor
	c.Logger = &mysql.NopLogger{} // failures are counted
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	s.db = sql.OpenDB(connector)
	s.db.SetMaxOpenConns(1)
	for _, statement := range []string{"create database if not exists test", "create table if not exists test.entries (id int primary key, since datetime)"} {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return s.db, nil
}

// Put writes an entry. It is acknowledged when the cluster has certified it.
func (s *server) Put(ctx context.Context, n int) (acknowledged bool, err error) {
	db, err := s.connected(ctx)
	if err != nil {
		return false, err
	}
	_, err = db.ExecContext(ctx, "insert into test.entries values (?, ?) on duplicate key update since = since", n, time.Now().UTC())
	return err == nil, err
}

func (s *server) Has(ctx context.Context, n int) (bool, error) {
	db, err := s.connected(ctx)
	if err != nil {
		return false, err
	}
	var id int
	err = db.QueryRowContext(ctx, "select id from test.entries where id = ?", n).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Close ends the connection, so that the next one can reach another member.
func (s *server) Close() {
	if s.db != nil {
		_ = s.db.Close() // it is usually broken
		s.db = nil
	}
}
