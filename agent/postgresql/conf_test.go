package postgresql

import (
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/wal"
	common "github.com/stateful-operator/stateful-operator/agent/settings"
)

func testServer() *Server {
	return &Server{Member: driver.Member{Name: "orders-2", Private: "/run/agent/postgresql"}, config: settings.Config{Common: common.Common{
		PrimaryHost: "orders-primary", Port: 5432, ListenAddresses: "*", DataDir: "/data/pgdata", RunDir: "/run/agent", CredentialsDir: "/credentials",
		Settings: map[string]string{"max_connections": "50", "log_line_prefix": `it's \ %m`, "wal_keep_size": "1GB"},
	}}}
}

func TestConfiguration(t *testing.T) {
	s := testServer()
	control := &wal.Control{Settings: map[string]int{"max_connections": 80, "max_worker_processes": 8, "max_wal_senders": 5}}
	lines := func(as role) []string { return strings.Split(s.configuration(as, control), "\n") }
	for _, row := range []struct {
		as   role
		want string
	}{
		{asPrimary, "max_connections = '50'"},
		{asStandby, "max_connections = '80'"}, // of the primary whose log it replays
		{asStandby, "max_wal_senders = '10'"},
		{asPrimary, `log_line_prefix = 'it''s \\ %m'`},
		{asPrimary, "wal_keep_size = '1GB'"},
		{asPrimary, "max_slot_wal_keep_size = '4GB'"},
		{asPrimary, "primary_conninfo = ''"},
		{forSeed, "primary_conninfo = ''"}, // nothing can be added to the copy
		{forSeed, "max_connections = '50'"},
		{forSeed, "hot_standby = 'off'"},
		{asStandby, "hot_standby = 'on'"},
		{asPrimary, "listen_addresses = '*'"},
		{asPrivate, "listen_addresses = ''"},
		{forRecovery, "listen_addresses = ''"},
		{forRecovery, "archive_mode = 'off'"},
		{asPrimary, "synchronous_standby_names = ''"},
		{asPrimary, "ssl = 'off'"},
	} {
		got := lines(row.as)
		if !contains(got, row.want) {
			t.Errorf("role %d has no %s in\n%s", row.as, row.want, strings.Join(got, "\n"))
		}
	}
	text := s.configuration(asStandby, control)
	for _, want := range []string{
		"host=''orders-primary''", "user=''replicator''", "target_session_attrs=''read-write''", "tcp_user_timeout=''6000''",
		"application_name=''orders-2''", "passfile=''/run/agent/postgresql/passwords''", "wal_receiver_timeout = '10s'", "wal_retrieve_retry_interval = '500ms'",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("a standby has no %s in\n%s", want, text)
		}
	}
	s.config.SynchronousStandbys = 2
	if text := s.configuration(asPrimary, nil); !strings.Contains(text, `synchronous_standby_names = 'ANY 2 ("orders-0","orders-1",`) {
		t.Errorf("no names of members in\n%s", text)
	}
	if strings.Contains(s.configuration(forRecovery, nil), "ANY") {
		t.Error("a recovery waits for standbys")
	}
}

func contains(lines []string, want string) bool {
	for _, line := range lines {
		if line == want {
			return true
		}
	}
	return false
}

// Every setting that the agent sets itself must be refused from users, or a user's value would be ignored.
func TestOwnSettingsAreRefused(t *testing.T) {
	s := testServer()
	s.config.TLSDir = "/tls"
	for name := range s.ownSettings(asStandby) {
		if settings.Validate(map[string]string{name: "x"}) == nil {
			t.Errorf("users can set %s", name)
		}
	}
	for name, value := range defaults {
		if err := settings.Validate(map[string]string{name: value}); err != nil {
			t.Errorf("users cannot set a default: %v", err)
		}
	}
}

func TestTheAccessRulesRequireTLS(t *testing.T) {
	s := testServer()
	if got := s.accessRules(); !strings.Contains(got, "\nhost all all all scram-sha-256\n") || strings.Contains(got, "hostssl") {
		t.Errorf("the rules are %s", got)
	}
	s.config.TLSDir = "/tls"
	got := s.accessRules()
	for line := range strings.SplitSeq(strings.TrimSpace(got), "\n") {
		if !strings.HasPrefix(line, "local ") && !strings.HasPrefix(line, "hostssl ") {
			t.Errorf("%q permits a connection without TLS", line)
		}
	}
	if strings.Contains(strings.ReplaceAll(got, "local all postgres trust\nlocal replication postgres trust\n", ""), "trust") {
		t.Errorf("a password is not required: %s", got)
	}
}

func TestVerifiers(t *testing.T) {
	// The example of RFC 7677.
	const stored = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if !verifies(stored, "pencil") {
		t.Error("the verifier of RFC 7677 is not that of its password")
	}
	for _, verifier := range []string{"", "md5a", "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:W22Z$a:b", "SCRAM-SHA-256$x:W22ZaJ0SNY7soEsUEjb6gQ==$a:b", stored + "x"} {
		if verifies(verifier, "pencil") {
			t.Errorf("%q is accepted", verifier)
		}
	}
	if verifies(stored, "pencil2") {
		t.Error("another password is accepted")
	}
	one, err := newVerifier("pencil")
	if err != nil || one == stored || !verifies(one, "pencil") {
		t.Errorf("a new verifier is %s (%v)", one, err)
	}
}

func TestMessagesAtTheEndOfTheLog(t *testing.T) {
	for message, end := range map[string]bool{
		"pg_waldump: error: error in WAL record at 0/2000068: invalid record length at 0/2000090: wanted 24, got 0": true,
		"pg_waldump: fatal: error in WAL record at 0/2000068: invalid magic number 0000":                            true,
		"pg_waldump: error: could not find a valid record after 0/3000000":                                          true,
		"pg_waldump: error: could not find file \"000000010000000000000004\": No such file or directory":            true,
		"pg_waldump: error: could not read from file 000000010000000000000004, offset 0: Input/output error":        false,
		"pg_waldump: error: could not open file \"000000010000000000000004\": Permission denied":                    false,
		"": false,
	} {
		if got := endOfLog.MatchString(message); got != end {
			t.Errorf("%q is the end of the log: %v, want %v", message, got, end)
		}
	}
}
