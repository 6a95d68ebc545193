package settings

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/settings"
	"github.com/stateful-operator/stateful-operator/agent/settings/settingstest"
)

func TestAnEncodedConfigurationIsTheSame(t *testing.T) {
	c := Config{Common: settings.Common{
		PrimaryHost: "shop-primary", DataDir: "/data", RunDir: "/dev/shm", CredentialsDir: "/credentials",
		Settings: map[string]string{"gcache.size": "1G"},
	}}
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	c.Port, c.ListenAddresses, c.CommandSeconds = 3306, "*", 570
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("the configuration is %+v (%v), want %+v", got, err, c)
	}
	for _, bad := range []string{"", "{", strings.Replace(text, "shop-primary", "", 1), strings.Replace(text, "gcache.size", "wsrep_on", 1)} {
		if _, err := Decode(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSettingsOfUsers(t *testing.T) {
	settingstest.Check(t, Problems, [][3]string{
		{"innodb_buffer_pool_size", "1G", ""},
		{"max_connections", "500", ""},
		{"skip_name_resolve", "OFF", ""},
		{"sql_mode", "STRICT_TRANS_TABLES,NO_ZERO_DATE", ""},
		{"wsrep_slave_threads", "4", ""},
		{"gcache.size", "1G", ""},
		{"evs.suspect_timeout", "PT10S", ""},
		{"innodb-buffer-pool-size", "1G", "underscores"},
		{"[client]", "x", "underscores"},
		{"datadir", "/tmp", "files"},
		{"data", "/tmp", "whole name"},
		{"skip_networking", "1", "network"},
		{"loose_skip_grant_tables", "1", "socket"},
		{"innodb_flush_log_at_trx_commit", "2", "lost"},
		{"innodb_flush_log_at_trx", "2", "whole name"},
		{"loose_innodb_doublewrite", "0", "lost"},
		{"wsrep_provider_options", "pc.bootstrap=1", "replication"},
		{"wsrep", "x", "replication"},
		{"innodb_flush_method", "O_DIRECT", ""},
		{"loose_innodb_flush_method", "nosync", "lost"},
		{"repl.commit_order", "0", "lost"},
		{"pc.bootstrap", "1", "replication"},
		{"gmcast.listen_addr", "tcp://0.0.0.0", "network"},
		{"gcache.size", "1G;pc.bootstrap=1", "semicolon"},
		{"gcache.dir", "/tmp", "files"},
		{"socket.ssl_key", "/tmp", "spec.TLS"},
		{"ssl_cert", "/x", "spec.TLS"},
		{"max_connections", "5\nwsrep_on=OFF", "one line"},
	})
}
