package settings

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

func valid() Config {
	return Config{Common: settings.Common{PrimaryHost: "db-primary", DataDir: "/data/pgdata", RunDir: "/run/agent", CredentialsDir: "/credentials"}}
}

func TestAnEncodedConfigurationIsTheSame(t *testing.T) {
	c := valid()
	c.SynchronousStandbys = 2
	c.Settings = map[string]string{"search_path": `"$user", public`, "log_line_prefix": "$(POD_NAME) $$(X) <%m>"}
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "$") {
		t.Errorf("the kubelet expands references in %s", text)
	}
	got, err := Decode(text)
	c.Port, c.ListenAddresses, c.CommandSeconds = 5432, "*", 570
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("the configuration is %+v (%v), want %+v", got, err, c)
	}
	if _, err := Decode(strings.Replace(text, "{", `{"fromTheFuture":1,`, 1)); err != nil {
		t.Errorf("a field of a newer operator: %v", err)
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"primaryHost is not set":          func(c *Config) { c.PrimaryHost = "" },
		"is not a name":                   func(c *Config) { c.PrimaryHost = "a user=b" },
		"dataDir":                         func(c *Config) { c.DataDir = "data" },
		"runDir":                          func(c *Config) { c.RunDir = "/run/../etc" },
		"credentialsDir":                  func(c *Config) { c.CredentialsDir = "" },
		"tlsDir":                          func(c *Config) { c.TLSDir = "/" },
		"port":                            func(c *Config) { c.Port = 70000 },
		"synchronousStandbys":             func(c *Config) { c.SynchronousStandbys = -1 },
		"commandSeconds":                  func(c *Config) { c.CommandSeconds = 5 },
		"setting fsync: data can be lost": func(c *Config) { c.Settings = map[string]string{"fsync": "off"} },
	} {
		c := valid()
		change(&c)
		text, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	for _, text := range []string{"", "{", "[]"} {
		if _, err := Decode(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestSettingsOfUsers(t *testing.T) {
	for _, row := range []struct{ name, value, want string }{
		{"shared_buffers", "256MB", ""},
		{"pg_stat_statements.max", "1000", ""},
		{"log_line_prefix", "it's %m", ""},
		{"archive_command", "wal-g push %p", ""},
		{"wal_level", "logical", ""},
		{"wal_level", "minimal", "replica or logical"},
		{"password_encryption", "md5", "scram-sha-256"},
		{"max_wal_senders", "0", "at least 4"},
		{"max_wal_senders", "many", "at least 4"},
		{"superuser_reserved_connections", "0", "at least 2"},
		{"max_connections", "10", ""},
		{"fsync", "off", "lost"},
		{"Fsync", "off", "lower case"},
		{"synchronous_standby_names", "*", "replication"},
		{"recovery_target_time", "now", "replication"},
		{"default_transaction_read_only", "on", "accepts writes"},
		{"include", "/etc/passwd", "files"},
		{"a b", "c", "name"},
		{"", "c", "name"},
		{"log_directory", "a\nfsync = off", "one line"},
		{"log_directory", strings.Repeat("a", 9000), "one line"},
	} {
		err := Validate(map[string]string{row.name: row.value})
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s = %q: %v, want %q", row.name, row.value, err, row.want)
		}
	}
	if err := Validate(map[string]string{"ssl": "on", "port": "1"}); err == nil || err.Error() != "setting port: "+settings.ReasonNetwork+"\nsetting ssl: "+settings.ReasonTLS {
		t.Errorf("two errors are %v", err)
	}
	if got := Refused(); len(got) != len(refused) || got[0] != "archive_cleanup_command" {
		t.Errorf("the refused settings are %v", got)
	}
	for name := range maps.Keys(refused) {
		if Validate(map[string]string{name: "x"}) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
