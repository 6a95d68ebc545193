package settings

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/settings"
	"github.com/stateful-operator/stateful-operator/agent/settings/settingstest"
)

func TestAnEncodedConfigurationIsTheSame(t *testing.T) {
	c := Config{Common: settings.Common{
		PrimaryHost: "shop-primary", DataDir: "/data", RunDir: "/dev/shm", CredentialsDir: "/credentials",
		Settings: map[string]string{"gcache.size": "1G"},
	}}
	want := c
	want.Port, want.ListenAddresses, want.CommandSeconds = 3306, "*", 570
	settingstest.RoundTrip(t, c.Encode, Decode, want, [2]string{"shop-primary", ""}, [2]string{"gcache.size", "wsrep_on"})
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
