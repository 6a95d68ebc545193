package settings

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/settings"
	"github.com/stateful-operator/stateful-operator/agent/settings/settingstest"
)

func TestAnEncodedConfigurationIsTheSame(t *testing.T) {
	c := Config{Common: settings.Common{
		PrimaryHost: "config-primary", DataDir: "/data", RunDir: "/dev/shm", CredentialsDir: "/credentials",
		Settings: map[string]string{"quota-backend-bytes": "1"},
	}, Service: "config-svc"}
	want := c
	want.Port, want.ListenAddresses, want.CommandSeconds = 2379, "*", 570
	got := settingstest.RoundTrip(t, c.Encode, Decode, want, [2]string{"config-svc", ""}, [2]string{"quota-backend-bytes", "name"})
	if got.PeerPort() != 2380 || got.MetricsPort() != 2381 {
		t.Errorf("the ports are %d and %d", got.PeerPort(), got.MetricsPort())
	}
}

func TestFlagsOfUsers(t *testing.T) {
	settingstest.Check(t, Problems, [][3]string{
		{"quota-backend-bytes", "8589934592", ""},
		{"auto-compaction-mode", "revision", ""},
		{"snapshot-count", "10000", ""},
		{"log-level", "debug", ""},
		{"initial-cluster-token", "x", "members"},
		{"force-new-cluster", "true", "members"},
		{"data-dir", "/tmp", "files"},
		{"listen-client-urls", "http://0.0.0.0:1", "network"},
		{"unsafe-no-fsync", "true", "lost"},
		{"cert-file", "/x", "spec.TLS"},
		{"peer-cert-file", "/x", "spec.TLS"},
		{"--log-level", "debug", "without dashes"},
		{"log-level", "debug\nx", "one line"},
	})
}
