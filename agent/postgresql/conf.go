package postgresql

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/wal"
)

// role is the role in which a server is started.
type role int

const (
	asPrimary   role = iota
	asStandby        // follows the primary
	forSeed          // replays its own log only, and is then promoted
	asPrivate        // a primary to which no client can connect
	forRecovery      // as asPrivate, for a copy that will be rewound
)

const (
	autoConf  = "postgresql.auto.conf"
	hbaFile   = "pg_hba.conf"
	identFile = "pg_ident.conf"

	// countedMembers is the number of members that can count as synchronous standbys. A list of names
	// excludes other clients that receive the log, such as pg_receivewal and logical replication.
	countedMembers = 64
)

// defaults are settings that users can change.
//
// There are no replication slots: the slot of a member that is gone would keep log until the volume of
// the primary is full. wal_keep_size lets a standby return after a restart. One that lags further is
// copied again. Slots of users are bounded by max_slot_wal_keep_size.
var defaults = map[string]string{
	"wal_keep_size":          "512MB",
	"max_slot_wal_keep_size": "4GB",
	"wal_sender_timeout":     "10s",
	"max_wal_senders":        "10",
	"wal_level":              "replica",
	"password_encryption":    "scram-sha-256",
	"log_line_prefix":        "%m [%p] ",
}

// writeConfiguration writes the files that the server reads at its start. postgresql.auto.conf precedes
// all other files, so the effect of ALTER SYSTEM ends with the next start.
func (s *Server) writeConfiguration(as role, control *wal.Control) error {
	if err := s.writePasswords(); err != nil {
		return err
	}
	if _, err := s.writeCertificate(); err != nil {
		return err
	}
	if err := files.WriteDurably(s.Private.Path(hbaFile), []byte(s.accessRules())); err != nil {
		return err
	}
	if err := files.WriteDurably(s.Private.Path(identFile), nil); err != nil {
		return err
	}
	return files.WriteDurably(s.data(autoConf), []byte(s.configuration(as, control)))
}

// accessRules lets the superuser connect without a password by the socket, which is in a private folder.
// Peer authentication requires an entry in /etc/passwd, which a random user ID does not have.
func (s *Server) accessRules() string {
	network := "host"
	if s.config.TLSDir != "" {
		network = "hostssl"
	}
	return fmt.Sprintf(`local all %[2]s trust
local replication %[2]s trust
local all all scram-sha-256
%[1]s all all all scram-sha-256
%[1]s replication all all scram-sha-256
`, network, settings.Superuser)
}

// configuration returns the content of postgresql.auto.conf. Later lines win.
func (s *Server) configuration(as role, control *wal.Control) string {
	values := maps.Clone(defaults)
	maps.Copy(values, s.config.Settings)
	if as == asStandby && control != nil {
		raise(values, control.Settings)
	}
	maps.Copy(values, s.ownSettings(as))

	text := new(strings.Builder)
	fmt.Fprintln(text, "# The agent writes this file when the server starts.")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(text, "%s = %s\n", name, quoteSetting(values[name]))
	}
	return text.String()
}

// builtIn are the values of PostgreSQL itself for settings that raise may have to set.
var builtIn = map[string]int{
	"max_connections": 100, "max_worker_processes": 8, "max_wal_senders": 10,
	"max_prepared_transactions": 0, "max_locks_per_transaction": 64,
}

// raise sets settings to at least the values of the primary whose log the standby replays, because a
// standby with lower values stops to replay.
func raise(values map[string]string, primary map[string]int) {
	for name, low := range primary {
		wanted := builtIn[name]
		if number, err := strconv.Atoi(values[name]); err == nil {
			wanted = number
		}
		if low > wanted {
			values[name] = strconv.Itoa(low)
		}
	}
}

func (s *Server) ownSettings(as role) map[string]string {
	own := map[string]string{
		"listen_addresses":             s.config.ListenAddresses,
		"port":                         s.port(),
		"unix_socket_directories":      string(s.Private),
		"unix_socket_permissions":      "0700",
		"hba_file":                     s.Private.Path(hbaFile),
		"ident_file":                   s.Private.Path(identFile),
		"cluster_name":                 s.Name,
		"hot_standby":                  "on",
		"wal_log_hints":                "on",
		"full_page_writes":             "on",
		"fsync":                        "on",
		"logging_collector":            "off",
		"primary_conninfo":             "",
		"recovery_target_timeline":     "latest",
		"wal_retrieve_retry_interval":  "500ms",
		"wal_receiver_timeout":         "10s",
		"wal_receiver_status_interval": "1s",
		"synchronous_standby_names":    s.synchronousNames(),
		"ssl":                          "off",
	}
	if s.config.TLSDir != "" {
		maps.Copy(own, s.tlsSettings())
	}
	switch as {
	case asStandby:
		own["primary_conninfo"] = s.primaryConninfo()
	case forSeed:
		own["hot_standby"] = "off" // otherwise lower settings than before would prevent the start
	case asPrivate:
		own["listen_addresses"] = ""
	case forRecovery:
		own["listen_addresses"] = ""
		own["archive_mode"] = "off"
		own["autovacuum"] = "off"
		own["synchronous_standby_names"] = ""
	}
	return own
}

// primaryConninfo uses the name of the current primary, so that a standby follows a new one without a
// command. target_session_attrs refuses members that are not primary, also the standby itself.
func (s *Server) primaryConninfo() string {
	info := s.upstream(s.config.PrimaryHost, settings.Replicator)
	return append(info, conninfo{{"application_name", s.Name}, {"target_session_attrs", "read-write"}}...).String()
}

func (s *Server) synchronousNames() string {
	if s.config.SynchronousStandbys == 0 {
		return ""
	}
	set := s.Name
	if i := strings.LastIndexByte(set, '-'); i > 0 {
		set = set[:i]
	}
	names := make([]string, 0, countedMembers)
	for ordinal := range countedMembers {
		names = append(names, fmt.Sprintf(`"%s-%d"`, set, ordinal))
	}
	return fmt.Sprintf("ANY %d (%s)", s.config.SynchronousStandbys, strings.Join(names, ","))
}

func quoteSetting(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(value) + "'"
}

// setSignal creates or removes the file that makes a server start as a standby.
func (s *Server) setSignal(as role) error {
	_ = os.Remove(s.data("recovery.signal")) // the next start fails if it remains
	if as == asStandby || as == forSeed {
		return files.WriteDurably(s.data(standbySignal), nil)
	}
	if err := files.Remove(s.data(standbySignal)); err != nil {
		return err
	}
	return files.SyncFolder(s.config.DataDir)
}
