package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/client"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

func TestClientProgram(t *testing.T) {
	s, a, b, c := trio(t)
	history := filepath.Join(s.dir, "program.history")
	a.does("client", a.address, "--count=5", "--every=1ms", "--id=p", "--history="+history)
	forever := a.command("client", a.address, "--every=1ms", "--history="+filepath.Join(s.dir, "forever.history"))
	if err := forever.Start(); err != nil {
		t.Fatal(err)
	}
	s.until("it has appended", func() bool { return a.view(s).Index > 10 })
	if err := forever.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := forever.Wait(); err != nil {
		t.Error(err)
	}
	a.ends(exitFailed, "client", a.address, "--history="+history) // it is another's
	s.same(a, b, c)
	if report := s.check(a); report.Appends < 9 || report.Reads == 0 {
		t.Errorf("got %v", report)
	}
	if code, out := a.run("log"); code != 0 || strings.Count(out, "\n") != len(a.log()) {
		t.Errorf("log ended with %d and %q", code, out)
	}
}

func TestClientOutcomes(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer string
		status int
		want   string
	}{
		{"it had no effect", `{"effect":"none"}`, 503, record.Refused},
		{"nobody knows", `{"effect":"unknown"}`, 503, record.Unknown},
		{"a proxy answers", `bad gateway`, 502, record.Unknown},
		{"a ledger that is no ledger", `{}`, 404, record.Unknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			var asked atomic.Int32
			enough := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(row.status)
				_, _ = w.Write([]byte(row.answer))
				if asked.Add(1) == 2 {
					close(enough)
				}
			}))
			defer server.Close()
			want(t, server.Listener.Addr().String(), enough, row.want)
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		enough := make(chan struct{})
		close(enough)
		want(t, freeAddress(t), enough, record.Refused)
	})
}

// want tries until it is enough.
func want(t *testing.T, address string, enough <-chan struct{}, outcome string) {
	t.Helper()
	var history strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-enough; cancel() }()
	c := client.Client{Address: address, ID: "x", History: &history}
	if op, err := c.Append(ctx, "v"); err != nil || op.Outcome != outcome || op.Error == "" {
		t.Errorf("%+v: %v", op, err)
	}
	lines, _, err := record.Lines[record.Op]([]byte(history.String()))
	if err != nil || len(lines) != 2 || lines[0].Outcome != "" || lines[1].Outcome != outcome {
		t.Errorf("%+v: %v", lines, err)
	}
}
