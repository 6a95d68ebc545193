package settings

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/settings"
	"github.com/stateful-operator/stateful-operator/agent/settings/settingstest"
)

func TestAnEncodedConfigurationIsTheSame(t *testing.T) {
	c := Config{Common: settings.Common{
		PrimaryHost: "events-primary", DataDir: "/data", RunDir: "/dev/shm", CredentialsDir: "/credentials",
		Settings: map[string]string{"heartbeat": "30"},
	}, Service: "events-svc", Plugins: []string{"rabbitmq_management"}}
	want := c
	want.Port, want.ListenAddresses, want.CommandSeconds = 5672, "*", 570
	settingstest.RoundTrip(t, c.Encode, Decode, want, [2]string{"events-svc", ""}, [2]string{"heartbeat", "default_pass"}, [2]string{"rabbitmq_management", "../x"})
}

func TestSettingsOfUsers(t *testing.T) {
	settingstest.Check(t, Problems, [][3]string{
		{"vm_memory_high_watermark.relative", "0.6", ""},
		{"log.console.level", "debug", ""},
		{"quorum_queue.continuous_membership_reconciliation.target_group_size", "5", ""},
		{"default_queue_type", "classic", ""},
		{"management.tcp.port", "15672", ""},
		{"log.console", "false", "log"},
		{"log.file.level", "debug", "log"},
		{"listeners.tcp.default", "1", "network"},
		{"cluster_formation.peer_discovery_backend", "k8s", "members"},
		{"default_pass", "x", "Secret"},
		{"loopback_users.admin", "false", "Secret"},
		{"ssl_options.certfile", "/x", "spec.TLS"},
		{"raft.data_dir", "/tmp", "files"},
		{"proxy_protocol", "true", "port"},
		{"[{rabbit", "x", "rabbitmq.conf"},
		{"heartbeat", "1\ndefault_pass = x", "one line"},
	})
}

func TestPluginsOfUsers(t *testing.T) {
	for name, bad := range map[string]bool{
		"rabbitmq_management": false, "my_own": false,
		"rabbitmq_peer_discovery_k8s": true, "a b": true, "a].": true, "": true,
	} {
		if got := len(PluginProblems([]string{name})) > 0; got != bad {
			t.Errorf("%q is refused: %t, want %t", name, got, bad)
		}
	}
}
