package main

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFind tests which files of a folder are read.
func TestFind(t *testing.T) {
	folder := t.TempDir()
	const pod = "nodes/n/log/pods/app_mailer-1_42/main/"
	wanted := []string{"logs/audit-2026-01-02T03-04-05.000.log", "logs/audit.log", pod + "0.log", pod + "1.log", pod + "1.log.20260102-030405.gz"}
	for _, name := range append([]string{"logs/kube-apiserver.log", pod + "text", "nodes/n/log/pods/mailer/main/0.log", "audit.json"}, wanted...) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range wanted {
		wanted[i] = filepath.Join(folder, wanted[i])
	}
	got, err := find([]string{folder})
	if err != nil || !slices.Equal(got, wanted) {
		t.Errorf("the files are %q, error %v", got, err)
	}
	named := filepath.Join(folder, "audit.json")
	if got, err := find([]string{named}); err != nil || !slices.Equal(got, []string{named}) {
		t.Errorf("the file that is named is %q, error %v", got, err)
	}
	if _, err := find([]string{filepath.Join(folder, "missing")}); err == nil {
		t.Error("a missing folder has files")
	}
}

func TestInOrder(t *testing.T) {
	got := inOrder([]string{"a/0.log", "a/0.log.20260103-000000", "a/0.log.20260102-000000.gz"})
	if want := []string{"a/0.log.20260102-000000.gz", "a/0.log.20260103-000000", "a/0.log"}; !slices.Equal(got, want) {
		t.Errorf("the parts are %q, want %q", got, want)
	}
}

// TestLoadParts tests that the parts of a log that was too long are one container, and that the last one can be read.
func TestLoadParts(t *testing.T) {
	r, p := holder(t)
	folder := r.save()
	log := filepath.Join(folder, r.file(p))
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	first, err := os.Create(log + ".20260102-030405.gz")
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(first)
	if _, err := packed.Write([]byte(lines[0])); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(strings.Join(lines[1:], "")), 0o644); err != nil {
		t.Fatal(err)
	}
	read, err := load([]string{folder})
	if err != nil || len(read.containers) != 1 || len(read.containers[0].marks) != 1 {
		t.Fatalf("the containers are %+v, error %v", read.containers, err)
	}
	for name, text := range map[string]string{log: "no log\n", log + ".20260102-030405.gz": "not packed"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := load([]string{folder}); err == nil {
			t.Errorf("%s was read", filepath.Base(name))
		}
	}
}
