package rabbitmq

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/rabbitmq/settings"
)

// TestDataOfAMember tests that a copy has data only while it has its member of the metadata's group, which
// RabbitMQ deletes when the member is removed.
func TestDataOfAMember(t *testing.T) {
	for _, row := range []struct {
		name, file, text string
		want             bool
	}{
		{"the log of all groups", "0000000000000002.wal", "x", false},
		{"the metadata", "RABBITKSNKYJGY8HB5/config", "#{cluster_name => rabbitmq_metadata}.", true},
		{"the coordinator of streams", "RABBITKSNKYJGY8HB6/config", "#{cluster_name => rabbit_stream_coordinator}.", false},
		{"a configuration that a crash has truncated", "RABBITKSNKYJGY8HB5/config", "", true},
		{"no configuration yet", "RABBITKSNKYJGY8HB5/0000000000000001.segment", "x", true},
		{"another group", "OTHERTKSNKYJGY8HB5/config", "rabbitmq_metadata", false},
	} {
		s := &Server{config: settings.Config{}}
		s.config.DataDir = t.TempDir()
		if found, err := s.hasData(); found || err != nil {
			t.Fatalf("an empty volume has data: %t, %v", found, err)
		}
		path := filepath.Join(s.data(), "coordination", "rabbit@a.s", row.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(row.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if found, err := s.hasData(); found != row.want || err != nil {
			t.Errorf("%s: the copy has data: %t, %v", row.name, found, err)
		}
	}
}
