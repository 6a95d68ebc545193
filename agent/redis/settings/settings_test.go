package settings

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/settings"
	"github.com/stateful-operator/stateful-operator/agent/settings/settingstest"
)

func TestAnEncodedConfigurationIsTheSame(t *testing.T) {
	c := Config{Common: settings.Common{
		PrimaryHost: "cache-primary", DataDir: "/data", RunDir: "/dev/shm", CredentialsDir: "/credentials",
		Settings: map[string]string{"save": "900 1 $(X)", "tls-ciphers": "HIGH"},
	}, MinReplicasToWrite: 1}
	want := c
	want.Port, want.ListenAddresses, want.CommandSeconds = 6379, "*", 570
	settingstest.RoundTrip(t, c.Encode, Decode, want, [2]string{`"minReplicasToWrite":1`, `"minReplicasToWrite":-1`}, [2]string{"tls-ciphers", "port"})
}

func TestSettingsOfUsers(t *testing.T) {
	settingstest.Check(t, Problems, [][3]string{
		{"maxmemory", "1gb", ""},
		{"maxmemory-policy", "allkeys-lru", ""},
		{"save", "", ""},
		{"tls-protocols", "TLSv1.3", ""},
		{"appendonly", "yes", "newest copy"},
		{"tls-port", "1", "spec.TLS"},
		{"dir", "/tmp", "files"},
		{"requirepass", "x", "Secret"},
		{"min-replicas-to-write", "1", "minReplicasToWrite"},
		{"MaxMemory", "1", "lower case"},
		{"replica-serve-stale-data", "no", "answer"},
		{"a b", "1", "name"},
		{"maxmemory", "1gb\nappendonly yes", "one line"},
	})
}
