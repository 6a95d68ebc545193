package postgresql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
)

// attemptLimit is the time for a connection and a short query. A server that needs longer hangs.
const attemptLimit = 2500 * time.Millisecond

const database = "postgres"

// local connects to the own server as superuser.
func (s *Server) local(ctx context.Context) (*pgx.Conn, error) {
	return connect(ctx, s.localInfo())
}

func (s *Server) localInfo() conninfo {
	return conninfo{
		{"host", string(s.Private)}, {"port", s.port()}, {"user", settings.Superuser}, {"database", database}, {"sslmode", "disable"},
	}
}

// remote connects to the server of another member as superuser.
func (s *Server) remote(ctx context.Context, host string) (*pgx.Conn, error) {
	if err := s.writePasswords(); err != nil {
		return nil, err
	}
	if _, err := s.writeCertificate(); err != nil {
		return nil, err
	}
	return connect(ctx, s.remoteInfo(host))
}

func (s *Server) remoteInfo(host string) conninfo {
	info := conninfo{
		{"host", host}, {"port", s.port()}, {"user", settings.Superuser}, {"database", database},
		{"passfile", s.Private.Path(passfile)}, {"connect_timeout", "4"},
	}
	return append(info, s.tlsOptions()...)
}

func connect(ctx context.Context, info conninfo) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(info.String())
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.RuntimeParams["application_name"] = "agent"
	config.RuntimeParams["search_path"] = "pg_catalog" // users can create functions in other schemas
	for _, limit := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		config.RuntimeParams[limit] = "0" // those of the settings are for users
	}
	config.RuntimeParams["default_transaction_isolation"] = "read committed" // serializable fails in a standby
	return pgx.ConnectConfig(ctx, config)
}

// closing closes a connection without waiting for a server that hangs.
func closing(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // the server ends the session in any case
}

// askLocal runs a query that returns one row in the own server.
func (s *Server) askLocal(ctx context.Context, query string, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	c, err := s.local(ctx)
	if err != nil {
		return err
	}
	defer closing(c)
	return c.QueryRow(ctx, query).Scan(into...)
}

func (s *Server) inRecovery(ctx context.Context) (recovering bool, err error) {
	err = s.askLocal(ctx, "select pg_is_in_recovery()", &recovering)
	if err != nil {
		return false, fmt.Errorf("the server does not answer: %w", err)
	}
	return recovering, nil
}

func (s *Server) port() string { return strconv.Itoa(int(s.config.Port)) }

// conninfo is a connection string of libpq.
type conninfo [][2]string

func (c conninfo) String() string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	parts := make([]string, 0, len(c))
	for _, option := range c {
		parts = append(parts, option[0]+"='"+quote.Replace(option[1])+"'")
	}
	return strings.Join(parts, " ")
}

// upstream returns options of libpq that end connections to an unreachable server within seconds.
// tcp_user_timeout limits attempts to connect as well: the WAL receiver ignores connect_timeout.
func (s *Server) upstream(host, user string) conninfo {
	info := conninfo{
		{"host", host}, {"port", s.port()}, {"user", user}, {"passfile", s.Private.Path(passfile)},
		{"connect_timeout", "3"}, {"tcp_user_timeout", "6000"},
		{"keepalives_idle", "5"}, {"keepalives_interval", "2"}, {"keepalives_count", "3"},
		{"gssencmode", "disable"},
	}
	return append(info, s.tlsOptions()...)
}
