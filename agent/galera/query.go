package galera

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/galera/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

const (
	// agentUser has all privileges at the socket, with a password that each member has for itself. Other
	// members connect as agentUser with the password of the Secret, and have no privileges.
	agentUser = "stateful-operator"
	socket    = "mariadb.sock"

	answerLimit = 4 * time.Second // for one query
)

// connection returns a pool with one connection.
func connection(network, address, password string) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = agentUser, password, network, address
	c.Timeout, c.ReadTimeout, c.WriteTimeout = answerLimit, answerLimit, answerLimit
	c.Logger = &mysql.NopLogger{}                        // errors are returned
	c.Params = map[string]string{"wsrep_sync_wait": "0"} // SHOW must not wait for replication
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// own returns a connection to the own server.
func (s *Server) own() (*sql.DB, error) {
	return connection("unix", s.Private.Path(socket), s.localPassword)
}

// peer returns a connection to the server of another member.
func (s *Server) peer(host string) (*sql.DB, error) {
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil {
		return nil, err
	}
	return connection("tcp", address(host, s.config.Port), password)
}

// view is the state that a member reports.
type view struct {
	id         string // of the history
	cluster    string // Primary if the member is connected to a majority
	local      string // for example Synced
	ready      bool   // it executes queries
	counts     bool   // for a majority, see weight
	weight     int    // of all connected members
	committed  int64
	generation generation
}

func (v view) primary() bool { return v.cluster == "Primary" }

// serves reports whether clients can write. A member that sends a copy serves as well.
func (v view) serves() bool { return v.primary() && v.ready }

// local returns the view of the own server.
func (s *Server) local(ctx context.Context) (view, error) {
	db, err := s.own()
	if err != nil {
		return view{}, err
	}
	defer db.Close()
	return inspect(ctx, db)
}

// inspect needs no privileges. A server without a majority executes only SHOW.
func inspect(ctx context.Context, db *sql.DB) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	found, err := show(ctx, db, "show global status like 'wsrep\\_%'")
	if err != nil {
		return view{}, err
	}
	variables, err := show(ctx, db, "show global variables where variable_name in ('wsrep_cluster_name', 'wsrep_provider_options')")
	if err != nil {
		return view{}, err
	}
	return parseView(found, variables)
}

func parseView(found, variables map[string]string) (view, error) {
	v := view{
		id: found["wsrep_cluster_state_uuid"], cluster: found["wsrep_cluster_status"], local: found["wsrep_local_state_comment"],
		ready:  found["wsrep_ready"] == "ON",
		counts: !strings.Contains(variables["wsrep_provider_options"], "pc.weight = 0;"),
	}
	if v.cluster == "" || v.id == "" {
		return view{}, errors.New("the server reports no state of Galera")
	}
	if err := v.generation.UnmarshalText([]byte(variables["wsrep_cluster_name"])); err != nil {
		return view{}, fmt.Errorf("wsrep_cluster_name: %w", err)
	}
	var err error
	if v.weight, err = strconv.Atoi(found["wsrep_cluster_weight"]); err != nil {
		return view{}, err
	}
	v.committed, err = strconv.ParseInt(found["wsrep_last_committed"], 10, 64)
	return v, err
}

// show returns the result of a query with two columns. Names are in lower case.
func show(ctx context.Context, db *sql.DB, query string) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		found[strings.ToLower(name)] = value
	}
	return found, rows.Err()
}

// waitForDisk returns when all that is committed now is on disk. A transaction counts as committed before
// its log is flushed.
func waitForDisk(ctx context.Context, db *sql.DB) error {
	lsn := func() (current, flushed uint64, err error) {
		found, err := show(ctx, db, "show global status like 'innodb\\_lsn\\_%'")
		if err == nil {
			current, err = strconv.ParseUint(found["innodb_lsn_current"], 10, 64)
		}
		if err == nil {
			flushed, err = strconv.ParseUint(found["innodb_lsn_flushed"], 10, 64)
		}
		return current, flushed, err
	}
	want, flushed, err := lsn()
	for err == nil && flushed < want {
		if !driver.Pause(ctx) {
			return errors.New("the log of InnoDB is not being flushed")
		}
		_, flushed, err = lsn()
	}
	return err
}

// Errors of the server.
const (
	tooManyConnections = 1040
	accessDenied       = 1045
)

// is reports whether a server has returned an error with this number.
func is(err error, number uint16) bool {
	returned, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && returned.Number == number
}

// isAnswer reports whether an error comes from a server, and not from the connection.
func isAnswer(err error) bool {
	_, ok := errors.AsType[*mysql.MySQLError](err)
	return ok
}

// isFull reports whether the server works, and clients use all its connections.
func isFull(err error) bool { return is(err, tooManyConnections) }
