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
		PrimaryHost: "cache-primary", DataDir: "/data", RunDir: "/dev/shm", CredentialsDir: "/credentials",
		Settings: map[string]string{"save": "900 1 $(X)", "tls-ciphers": "HIGH"},
	}, MinReplicasToWrite: 1}
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	c.Port, c.ListenAddresses, c.CommandSeconds = 6379, "*", 570
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("the configuration is %+v (%v), want %+v", got, err, c)
	}
	for _, bad := range []string{"", "{", strings.Replace(text, `"minReplicasToWrite":1`, `"minReplicasToWrite":-1`, 1), strings.Replace(text, "tls-ciphers", "port", 1)} {
		if _, err := Decode(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
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
