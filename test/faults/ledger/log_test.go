package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

func entry(epoch, index uint64, value string) record.Entry {
	return record.Entry{Epoch: epoch, Index: index, Client: "x", Request: value, Value: value}
}

func TestLogIsCutAndWrittenAnew(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	l, err := openLog(dir)
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range []record.Entry{entry(1, 1, "a"), entry(1, 2, "b"), entry(1, 3, "c")} {
		g.Expect(l.add(e)).To(Succeed())
	}
	old := l.all[3].sum
	g.Expect(l.cut(1)).To(Succeed())
	_, known := l.find("x", "c")
	g.Expect(known).To(BeFalse(), "the tail still exists")
	g.Expect(l.last()).To(Equal(entry(1, 1, "a")))
	g.Expect(l.add(entry(2, 2, "d"), entry(2, 3, "c"))).To(Succeed())
	g.Expect(l.close()).To(Succeed())

	l, err = openLog(dir)
	g.Expect(err).NotTo(HaveOccurred())
	at, known := l.find("x", "c")
	g.Expect(known).To(BeTrue())
	g.Expect(at).To(BeEquivalentTo(3))
	g.Expect(l.last().Sequence()).To(BeEquivalentTo(2<<40 | 3))
	g.Expect(l.all[3].sum).NotTo(Equal(old))
	g.Expect(l.all[3].seen.count).To(BeEquivalentTo(3))
}

func TestLogRefuses(t *testing.T) {
	g := NewWithT(t)
	l, err := openLog(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.add(entry(1, 2, "a gap"))).NotTo(Succeed())
	g.Expect(l.add(entry(1<<record.EpochBits, 1, "too many epochs"))).NotTo(Succeed())
}

func TestBrokenLogs(t *testing.T) {
	g := NewWithT(t)
	first := string(record.Marshal(entry(2, 1, "a")))
	for _, row := range []struct {
		name, text string
		entries    int // -1 is an error
	}{
		{"empty", "", 0},
		{"a truncated tail", first + `{"epo`, 1},
		{"an invalid line in the middle", "oops\n" + first, -1},
		{"a gap", first + string(record.Marshal(entry(2, 3, "b"))), -1},
		{"a decreasing epoch", first + string(record.Marshal(entry(1, 2, "b"))), -1},
		{"written by another program", "{}\n", -1},
	} {
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, logFile), []byte(row.text), 0o644)).To(Succeed())
		l, err := openLog(dir)
		if row.entries < 0 {
			g.Expect(err).To(HaveOccurred(), row.name)
			continue
		}
		g.Expect(err).NotTo(HaveOccurred(), row.name)
		g.Expect(l.last().Index).To(BeEquivalentTo(row.entries), row.name)
		text, err := os.ReadFile(filepath.Join(dir, logFile))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(text).To(HaveLen(int(l.size())), "%s: an invalid entry is left in the file", row.name)
	}
}

func TestLogPromises(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(readPromise(dir)).To(BeZero(), "the first")
	mine := promise{3, "a"}
	g.Expect(mine.keep(dir)).To(Succeed())
	g.Expect(readPromise(dir)).To(Equal(mine))
	for other, want := range map[promise]bool{{3, "a"}: true, {3, "b"}: false, {2, "a"}: false, {4, "b"}: true} {
		g.Expect(mine.allows(other)).To(Equal(want), "%v allows %v", mine, other)
	}
}

func TestWhoIsSelf(t *testing.T) {
	s := settings{name: "rss-x-1", listen: ":7070", self: "127.0.0.9:1"}
	got := s.others([]string{"rss-x-1.x-svc", "rss-x-10.x-svc", "127.0.0.9:1", "127.0.0.9:2", "fd00::1"})
	NewWithT(t).Expect(got).To(Equal([]string{"rss-x-10.x-svc:7070", "127.0.0.9:2", "[fd00::1]:7070"}))
}
