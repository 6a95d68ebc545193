package keep

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const pod = "nodes/node-1/log/pods/app_mailer_1/main"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// contents returns the files of a folder, in the order of their texts.
func contents(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, Folder, "node-1", "log", "pods", "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

// TestLogs tests that logs are kept although the kubelet deletes them, or replaces one that is too long.
func TestLogs(t *testing.T) {
	cluster := t.TempDir()
	first := filepath.Join(cluster, pod, "0.log")
	write(t, first, "one\n")
	for range 2 { // also by two processes
		if err := link(cluster); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.OpenFile(first, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(first, first+".20260102-030405"); err != nil {
		t.Fatal(err)
	}
	write(t, first, "two\n")
	if err := link(cluster); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(cluster, "nodes")); err != nil {
		t.Fatal(err)
	}
	if err := link(cluster); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, cluster); !slices.Equal(got, []string{"one\nmore\n", "two\n"}) {
		t.Errorf("the kept logs are %q", got)
	}
}

// TestLogsAreKeptUntilTheEnd tests that logs that are written after the start are kept.
func TestLogsAreKeptUntilTheEnd(t *testing.T) {
	cluster := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Logs(ctx, cluster, time.Hour) }()
	write(t, filepath.Join(cluster, pod, "0.log"), "one\n")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := contents(t, cluster); !slices.Equal(got, []string{"one\n"}) {
		t.Errorf("the kept logs are %q", got)
	}
}

// TestSave tests that Save copies the lines about Leases, pods and nodes, and complete lines only.
func TestSave(t *testing.T) {
	cluster, to := t.TempDir(), filepath.Join(t.TempDir(), "saved")
	lease, pods := `{"objectRef":{"resource":"leases"}}`+"\n", `{"objectRef":{"resource":"pods"}}`+"\n"
	write(t, filepath.Join(cluster, "logs", "audit.log"), lease+`{"objectRef":{"resource":"secrets"}}`+"\n"+pods+strings.TrimSuffix(lease, "\n"))
	if err := Save(cluster, to); err == nil {
		t.Error("a cluster without the log of a container was saved")
	}
	write(t, filepath.Join(cluster, pod, "0.log"), "one\n")
	if err := Save(cluster, to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(to, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != lease+pods {
		t.Errorf("the saved audit log is %q", text)
	}
	if got := contents(t, to); !slices.Equal(got, []string{"one\n"}) {
		t.Errorf("the saved logs are %q", got)
	}
}
