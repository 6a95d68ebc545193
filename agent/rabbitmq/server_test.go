package rabbitmq

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/rabbitmq/settings"
)

// TestDataOfAMember tests that a copy has data only while it has its member of the metadata's group, which
// RabbitMQ deletes when the member is removed, and only if the table of Raft has that member.
func TestDataOfAMember(t *testing.T) {
	const metadata = "#{cluster_name => rabbitmq_metadata}."
	for _, row := range []struct {
		name, file, text, table string
		files, data             bool
	}{
		{"the log of all groups", "0000000000000002.wal", "x", "RABBITKSNKYJGY8HB5", false, false},
		{"the metadata", "RABBITKSNKYJGY8HB5/config", metadata, "..RABBITKSNKYJGY8HB5..", true, true},
		{"the metadata, and another one in the table", "RABBITKSNKYJGY8HB5/config", metadata, "RABBITKSNKYJGY8HB6", true, false},
		{"the metadata, and no table", "RABBITKSNKYJGY8HB5/config", metadata, "", true, false},
		{"the coordinator of streams", "RABBITKSNKYJGY8HB6/config", "#{cluster_name => rabbit_stream_coordinator}.", "RABBITKSNKYJGY8HB6", false, false},
		{"a configuration that a crash has truncated", "RABBITKSNKYJGY8HB5/config", "", "RABBITKSNKYJGY8HB5", true, false},
		{"no configuration yet", "RABBITKSNKYJGY8HB5/0000000000000001.segment", "x", "RABBITKSNKYJGY8HB5", true, false},
		{"another group", "OTHERTKSNKYJGY8HB5/config", metadata, "OTHERTKSNKYJGY8HB5", false, false},
	} {
		s := &Server{config: settings.Config{}}
		s.config.DataDir = t.TempDir()
		expect := func(files, data bool) {
			t.Helper()
			gotFiles, filesErr := s.hasFiles()
			gotData, dataErr := s.hasData()
			if err := errors.Join(filesErr, dataErr); gotFiles != files || gotData != data || err != nil {
				t.Errorf("%s: files %t, data %t, %v", row.name, gotFiles, gotData, err)
			}
		}
		expect(false, false)
		folder := filepath.Join(s.data(), "coordination", "rabbit@a.s")
		write := func(name, text string) {
			t.Helper()
			path := filepath.Join(folder, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		write(row.file, row.text)
		if row.table != "" {
			write("names.dets", row.table)
		}
		expect(row.files, row.data)
	}
}
