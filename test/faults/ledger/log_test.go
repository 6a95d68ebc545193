package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

func entry(epoch, index uint64, value string) record.Entry {
	return record.Entry{Epoch: epoch, Index: index, Client: "x", Request: value, Value: value}
}

func TestLogIsCutAndWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	l, err := openLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []record.Entry{entry(1, 1, "a"), entry(1, 2, "b"), entry(1, 3, "c")} {
		if err := l.add(e); err != nil {
			t.Fatal(err)
		}
	}
	old := l.sum(3)
	if err := l.cut(1); err != nil {
		t.Fatal(err)
	}
	if _, known := l.find("x", "c"); known || l.last() != entry(1, 1, "a") {
		t.Error("the tail is still there")
	}
	if err := l.add(entry(2, 2, "d"), entry(2, 3, "c")); err != nil {
		t.Fatal(err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	l, err = openLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if at, known := l.find("x", "c"); !known || at != 3 || l.last().Epoch != 2 || l.sum(3) == old || l.seen(3).count != 3 {
		t.Errorf("read %+v", l)
	}
	if l.last().Sequence() != 2<<40|3 {
		t.Errorf("sequence %d", l.last().Sequence())
	}
}

func TestLogRefuses(t *testing.T) {
	l, err := openLog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []record.Entry{entry(1, 2, "a gap"), entry(1<<record.EpochBits, 1, "too many epochs")} {
		if err := l.add(e); err == nil {
			t.Errorf("it took %+v", e)
		}
	}
}

func TestBrokenLogs(t *testing.T) {
	first := string(record.Marshal(entry(2, 1, "a")))
	for _, row := range []struct {
		name, text string
		entries    int // -1 is an error
	}{
		{"empty", "", 0},
		{"a tail that was being written", first + `{"epo`, 1},
		{"a line in the middle that is none", "oops\n" + first, -1},
		{"a gap", first + string(record.Marshal(entry(2, 3, "b"))), -1},
		{"an epoch that falls", first + string(record.Marshal(entry(1, 2, "b"))), -1},
		{"written by somebody else", "{}\n", -1},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, logFile), []byte(row.text), 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := openLog(dir)
		if (row.entries < 0) != (err != nil) || (err == nil && len(l.entries) != row.entries) {
			t.Errorf("%s: %v", row.name, err)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, logFile)); err == nil && l.size() != int64(len(text)) {
			t.Errorf("%s: %d bytes of no entry are left in the file", row.name, int64(len(text))-l.size())
		}
	}
}

func TestPromises(t *testing.T) {
	dir := t.TempDir()
	p, err := readPromise(dir)
	if err != nil || p != (promise{}) {
		t.Fatalf("the first is %v: %v", p, err)
	}
	mine := promise{3, "a"}
	if err := mine.keep(dir); err != nil {
		t.Fatal(err)
	}
	if p, err = readPromise(dir); err != nil || p != mine {
		t.Fatalf("read %v: %v", p, err)
	}
	for other, want := range map[promise]bool{{3, "a"}: true, {3, "b"}: false, {2, "a"}: false, {4, "b"}: true} {
		if p.allows(other) != want {
			t.Errorf("%v allows %v: %t", p, other, !want)
		}
	}
}

func TestWhoIsSelf(t *testing.T) {
	s := settings{name: "rss-x-1", listen: ":7070", self: "127.0.0.9:1"}
	got := s.others([]string{"rss-x-1.x-svc", "rss-x-10.x-svc", "127.0.0.9:1", "127.0.0.9:2", "fd00::1"})
	want := []string{"rss-x-10.x-svc:7070", "127.0.0.9:2", "[fd00::1]:7070"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q", got)
	}
}
