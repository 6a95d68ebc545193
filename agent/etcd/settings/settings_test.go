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
		PrimaryHost: "config-primary", DataDir: "/data", RunDir: "/dev/shm", CredentialsDir: "/credentials",
		Settings: map[string]string{"quota-backend-bytes": "1"},
	}, Service: "config-svc"}
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	c.Port, c.ListenAddresses, c.CommandSeconds = 2379, "*", 570
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("the configuration is %+v (%v), want %+v", got, err, c)
	}
	if got.PeerPort() != 2380 || got.MetricsPort() != 2381 {
		t.Errorf("the ports are %d and %d", got.PeerPort(), got.MetricsPort())
	}
	for _, bad := range []string{"", "{", strings.Replace(text, "config-svc", "", 1), strings.Replace(text, "quota-backend-bytes", "name", 1)} {
		if _, err := Decode(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
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
