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

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/client"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

func TestClientProgram(t *testing.T) {
	s, a, b, c := trio(t)
	history := filepath.Join(s.dir, "program.history")
	a.does("client", a.address, "--count=5", "--every=1ms", "--id=p", "--history="+history)
	forever := a.begins("client", a.address, "--every=1ms", "--history="+filepath.Join(s.dir, "forever.history"))
	s.until("it has appended", func() bool { return a.view(s).Index > 10 })
	s.Expect(forever.Process.Signal(syscall.SIGTERM)).To(Succeed())
	s.Expect(forever.Wait()).To(Succeed())
	a.ends(exitFailed, "client", a.address, "--history="+history) // the file belongs to another client
	s.same(a, b, c)
	report := s.check(a)
	s.Expect(report.Appends).To(BeNumerically(">=", 9), report.String)
	s.Expect(report.Reads).NotTo(BeZero(), report.String)
	code, out := a.run("log")
	s.Expect(code).To(BeZero(), out)
	s.Expect(strings.Count(out, "\n")).To(Equal(len(a.log())), out)
}

func TestClientOutcomes(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer string
		status int
		want   string
	}{
		{"it had no effect", `{"effect":"none"}`, 503, record.Refused},
		{"the outcome is unknown", `{"effect":"unknown"}`, 503, record.Unknown},
		{"a proxy responds", `bad gateway`, 502, record.Unknown},
		{"a ledger that is not a ledger", `{}`, 404, record.Unknown},
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
	t.Run("the server is unreachable", func(t *testing.T) {
		enough := make(chan struct{})
		close(enough)
		want(t, freeAddress(t), enough, record.Refused)
	})
}

// want retries an append until enough is closed, and expects the outcome.
func want(t *testing.T, address string, enough <-chan struct{}, outcome string) {
	t.Helper()
	g := NewWithT(t)
	var history strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-enough; cancel() }()
	c := client.Client{Address: address, ID: "x", History: &history}
	g.Expect(c.Append(ctx, "v")).To(And(HaveField("Outcome", outcome), HaveField("Error", Not(BeEmpty()))))
	lines, _, err := record.Lines[record.Op]([]byte(history.String()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lines).To(HaveExactElements(HaveField("Outcome", ""), HaveField("Outcome", outcome)))
}
