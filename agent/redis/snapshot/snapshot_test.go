package snapshot

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

// The files are of Redis 7.0.15: a server without a secondary, and one with a secondary, with and without
// compression.
func TestRead(t *testing.T) {
	for name, offset := range map[string]int64{"alone": 0, "plain": 1464, "compressed": 1464} {
		h, err := Read("testdata/" + name + ".rdb")
		if err != nil {
			t.Fatal(err)
		}
		if h.Offset != offset || len(h.Functions) != 1 || !strings.Contains(h.Functions[0], "\n-- epoch 7696581394432 70 1800000000 7\n") {
			t.Errorf("the header of %s is %+v", name, h)
		}
	}
}

func TestOtherFiles(t *testing.T) {
	if _, err := Read("testdata/missing.rdb"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error for a missing file is %v", err)
	}
	for _, content := range []string{"", "REDIS", "PGCOPY\n\xff\r\n\x00"} {
		if _, err := read(bufio.NewReader(strings.NewReader(content))); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", content, err)
		}
	}
	valkey := "VALKEY080" + "\xfa\x0brepl-offset\xc2\x15\xcd\x5b\x07" + "\xfe\x00"
	if h, err := read(bufio.NewReader(strings.NewReader(valkey))); err != nil || h.Offset != 123456789 {
		t.Errorf("a snapshot of Valkey: %+v, %v", h, err)
	}
	module := "REDIS0011" + "\xf7\x81\x01\x02\x03\x04\x05\x06\x07\x08\x02\x02\x05\x01x\x04........\x03....\x00" + "\xfa\x0brepl-offset\xc0\x07" + "\xff"
	if h, err := read(bufio.NewReader(strings.NewReader(module))); err != nil || h.Offset != 7 {
		t.Errorf("a snapshot with data of a module: %+v, %v", h, err)
	}
}

// A damaged file is an error, or has a header, but does not end the program.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"alone", "plain", "compressed"} {
		content, err := os.ReadFile("testdata/" + name + ".rdb")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(_ *testing.T, content []byte) {
		_, _ = read(bufio.NewReader(bytes.NewReader(content))) // the result is unknown
	})
}
