package wal

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func lsn(t *testing.T, text string) LSN {
	t.Helper()
	at, err := ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestParseLSN(t *testing.T) {
	for text, want := range map[string]LSN{"0/0": 0, "0/17414D0": 0x17414d0, "16/B374D848": 0x16b374d848, "0/017F6C20": 0x17f6c20, "FFFFFFFF/FFFFFFFF": MaxLSN} {
		if got := lsn(t, text); got != want {
			t.Errorf("%s is %x, want %x", text, uint64(got), uint64(want))
		}
	}
	for _, text := range []string{"", "/", "0", "0/", "/0", "0/G", "0/100000000", "100000000/0", "0/0/0", "-1/0", " 0/0"} {
		if got, err := ParseLSN(text); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
	if got := LSN(0x16b374d848).String(); got != "16/B374D848" {
		t.Errorf("the text is %s", got)
	}
}

func TestNumberOrdersByTimelineFirst(t *testing.T) {
	ascending := []struct {
		timeline uint32
		at       string
	}{
		{1, "0/0"}, {1, "0/8"}, {1, "0/17414D0"}, {1, "1/0"}, {1, "FFFF/FFFFFFF8"}, {1, "7FFFF/FFFFFFF8"}, {2, "0/0"}, {65535, "7FFFF/FFFFFFF8"},
	}
	last := uint64(0)
	for _, row := range ascending {
		got, err := Number(row.timeline, lsn(t, row.at))
		if err != nil || got <= last {
			t.Errorf("timeline %d at %s is %x (%v), want more than %x", row.timeline, row.at, got, err, last)
		}
		last = got
	}
	if got, err := Number(2, 0x17414d0); err != nil || got != 2<<48|0x2e829a {
		t.Errorf("the number is %x (%v)", got, err)
	}
	for _, row := range []struct {
		timeline uint32
		at       LSN
	}{{0, 8}, {65536, 8}, {1, 1 << 51}, {1, MaxLSN}} {
		if got, err := Number(row.timeline, row.at); err == nil {
			t.Errorf("timeline %d at %s is %x, want an error", row.timeline, row.at, got)
		}
	}
}

var layout = Layout{Page: 8192, Segment: 16 << 20}

func TestTheEndOfARecord(t *testing.T) {
	for _, row := range []struct {
		name   string
		record Record
		want   string
	}{
		{"within a page, aligned", Record{Start: 0x17f6bb8, Length: 59}, "0/17F6BF8"},
		{"at the end of a page, without the next header", Record{Start: 0x1001f80, Length: 128}, "0/1002000"},
		{"alignment reaches the end of the page", Record{Start: 0x1001f80, Length: 123}, "0/1002000"},
		{"on the next page, after its header", Record{Start: 0x1001f80, Length: 136}, "0/1002020"},
		{"over three pages", Record{Start: 0x1001f80, Length: 128 + 8168 + 8}, "0/1004020"},
		{"in the next segment, after its longer header", Record{Start: 0x1ffff80, Length: 136}, "0/2000030"},
		{"a switch uses the rest of the segment", Record{Start: 0x17f6c20, Length: 24, Switch: true}, "0/2000000"},
		{"a switch at the end of a segment", Record{Start: 0x1ffffe8, Length: 24, Switch: true}, "0/2000000"},
	} {
		if got := layout.End(row.record); got.String() != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// The records of a real server are adjacent, so the end of each is the start of the next, or of its page.
func TestTheEndsOfRealRecords(t *testing.T) {
	text, err := os.ReadFile("testdata/waldump.txt")
	if err != nil {
		t.Fatal(err)
	}
	var last LSN
	records := 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		r, err := parseRecord(line)
		if err != nil {
			t.Fatal(err)
		}
		start := r.Start
		switch uint64(start) % layout.Page { // the end of a page is before the header of the next one
		case longHeader, shortHeader:
			start -= start % LSN(layout.Page)
		}
		if last != 0 && last != start {
			t.Errorf("the record before %s ends at %s", r.Start, last)
		}
		last = layout.End(r)
		records++
	}
	if records < 100 {
		t.Errorf("there are %d records", records)
	}
}

func TestLastRecord(t *testing.T) {
	const one = "rmgr: Transaction len (rec/tot):     34/    34, tx:        725, lsn: 0/017F6BF8, prev 0/017F6BB8, desc: COMMIT 2026-11-28 00:21:41 UTC\n"
	const image = "rmgr: Heap        len (rec/tot):     59/  8251, tx:        725, lsn: 1F/E8000028, prev 1F/E7FFFFD8, desc: INSERT off 56 flags 0x00, blkref #0: rel 1663/5/16384 blk 44 FPW\n"
	const change = "rmgr: XLOG        len (rec/tot):     24/    24, tx:          0, lsn: 0/017F6C20, prev 0/017F6BF8, desc: SWITCH \n"
	for _, row := range []struct {
		name, output string
		want         Record
		ok           bool
	}{
		{"nothing", "", Record{}, false},
		{"one", one, Record{Start: 0x17f6bf8, Length: 34}, true},
		{"the last one", image + one, Record{Start: 0x17f6bf8, Length: 34}, true},
		{"with images of pages", one + image, Record{Start: 0x1fe8000028, Length: 8251}, true},
		{"a switch", one + change, Record{Start: 0x17f6c20, Length: 24, Switch: true}, true},
		{"a long description", image + strings.TrimSuffix(one, "\n") + strings.Repeat(" inval msgs", 10000) + "\n", Record{Start: 0x17f6bf8, Length: 34}, true},
		{"other lines", "first record is after 0/17F6BF0, at 0/17F6BF8, skipping over 8 bytes\n" + one + "\n", Record{Start: 0x17f6bf8, Length: 34}, true},
	} {
		got, ok, err := LastRecord(strings.NewReader(row.output))
		if err != nil || ok != row.ok || got != row.want {
			t.Errorf("%s: %+v %v (%v), want %+v %v", row.name, got, ok, err, row.want, row.ok)
		}
	}
	if got, ok, err := LastRecord(strings.NewReader("rmgr: new format\n")); err == nil {
		t.Errorf("an unknown format is %+v %v, want an error", got, ok)
	}
}

func TestFileNames(t *testing.T) {
	large := Layout{Page: 8192, Segment: 1 << 30}
	for _, row := range []struct {
		layout   Layout
		timeline uint32
		at, name string
		start    string
	}{
		{layout, 1, "0/17414D0", "000000010000000000000001", "0/1000000"},
		{layout, 0xa, "16/FF000000", "0000000A00000016000000FF", "16/FF000000"},
		{large, 2, "1/C0000001", "000000020000000100000003", "1/C0000000"},
	} {
		at := lsn(t, row.at)
		if got := row.layout.FileName(row.timeline, at); got != row.name {
			t.Errorf("%s is in %s, want %s", row.at, got, row.name)
		}
		timeline, start, ok := row.layout.ParseFileName(row.name)
		if !ok || timeline != row.timeline || start.String() != row.start {
			t.Errorf("%s is timeline %d at %s (%v), want %s", row.name, timeline, start, ok, row.start)
		}
	}
	for _, name := range []string{"", "00000002.history", "archive_status", "000000010000000000000001.partial", "00000001000000000000000g"} {
		if _, _, ok := layout.ParseFileName(name); ok {
			t.Errorf("%q counts as a segment", name)
		}
	}
	for name, want := range map[string]uint32{"00000002.history": 2, "0000000A.history": 10} {
		if got, ok := ParseHistoryFile(name); !ok || got != want || HistoryFile(want) != name {
			t.Errorf("%s is timeline %d (%v), want %d", name, got, ok, want)
		}
	}
	for _, name := range []string{"2.history", ".history", "00000002", "00000002.history.tmp"} {
		if _, ok := ParseHistoryFile(name); ok {
			t.Errorf("%q counts as a history", name)
		}
	}
}

func TestParseHistory(t *testing.T) {
	got, err := ParseHistory(3, "1\t0/3000148\tno recovery target specified\n\n# comment\n2\t0/5000000\tno recovery target specified\n")
	want := History{{1, 0, 0x3000148}, {2, 0x3000148, 0x5000000}, {3, 0x5000000, MaxLSN}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the history is %v (%v), want %v", got, err, want)
	}
	for at, want := range map[LSN]uint32{0: 1, 0x3000147: 1, 0x3000148: 2, 0x5000000: 3, MaxLSN: 3} {
		if timeline := got.At(at); timeline != want {
			t.Errorf("the timeline at %s is %d, want %d", at, timeline, want)
		}
	}
	if got, err := ParseHistory(1, ""); err != nil || !slices.Equal(got, History{{1, 0, MaxLSN}}) {
		t.Errorf("the first history is %v (%v)", got, err)
	}
	for _, text := range []string{"1\n", "x 0/0", "1 0-0"} {
		if got, err := ParseHistory(2, text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestFork(t *testing.T) {
	one := History{{1, 0, 100}, {2, 100, MaxLSN}}
	for _, row := range []struct {
		name     string
		own      History
		timeline uint32
		at       LSN
		ok       bool
	}{
		{"the copy ends on the timeline of the primary", one.Until(150), 2, 150, true},
		{"the copy ends before the timeline of the primary begins", History{{1, 0, 80}}, 1, 80, true},
		{"the copy ends after it begins", History{{1, 0, 120}}, 1, 100, true},
		{"the copy has another timeline", History{{1, 0, 90}, {3, 90, 200}}, 1, 90, true},
		{"the same number begins at another position", History{{1, 0, 90}, {2, 90, 200}}, 1, 90, true},
		{"nothing in common", History{{7, 0, 90}}, 0, 0, false},
	} {
		timeline, at, ok := Fork(row.own, one)
		if timeline != row.timeline || at != row.at || ok != row.ok {
			t.Errorf("%s: timeline %d at %d (%v), want %d at %d (%v)", row.name, timeline, at, ok, row.timeline, row.at, row.ok)
		}
	}
}

func TestParseControl(t *testing.T) {
	text, err := os.ReadFile("testdata/controldata.txt")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseControl(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.System != "7713010916891274626" || c.Timeline != 1 || c.Redo.String() != "0/17414D0" || c.Layout != layout || !c.CleanlyStopped() {
		t.Errorf("the control file is %+v", c)
	}
	if c.Settings["max_connections"] != 100 || c.Settings["max_locks_per_transaction"] != 64 || c.Settings["max_prepared_transactions"] != 0 {
		t.Errorf("the settings are %v", c.Settings)
	}
	for state, clean := range map[string]bool{"in production": false, "shut down in recovery": true, "in archive recovery": false, "shutting down": false} {
		c, err := ParseControl(strings.Replace(string(text), "shut down", state, 1))
		if err != nil || c.CleanlyStopped() != clean {
			t.Errorf("%q is cleanly stopped: %v (%v)", state, !clean, err)
		}
	}
	for _, broken := range []string{
		"", "WARNING: Calculated CRC checksum does not match value stored in file.\n" + string(text),
		strings.Replace(string(text), "Bytes per WAL segment:                16777216", "Bytes per WAL segment:                0", 1),
		strings.Replace(string(text), "0/17414D0", "none", 2), strings.Replace(string(text), "max_connections", "max_connection", 1),
	} {
		if c, err := ParseControl(broken); err == nil {
			t.Errorf("a broken output is %+v, want an error", c)
		}
	}
}
