package freeze

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		method, path string
		want         string // empty where it is no write
	}{
		{"GET", "/api/v1/namespaces/ns/pods/p", ""},
		{"GET", "/api/v1/pods?watch=true", ""},
		{"POST", "/api/v1/namespaces/ns/pods", "POST pods: 0"},
		{"POST", "/api/v1/namespaces/ns/pods?dryRun=All", ""},
		{"POST", "/api/v1/namespaces/ns/events", ""},
		{"PATCH", "/apis/events.k8s.io/v1/namespaces/ns/events/e", ""},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", ""},
		{"PATCH", "/apis/enge.me/v1alpha1/namespaces/ns/statefulclusters/c/status", "PATCH statefulclusters c status: 0"},
		{"DELETE", "/api/v1/namespaces/ns", "DELETE namespaces ns: 0"},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l", "PUT leases l: 0"},
		{"GET", "/api/v1/namespaces/ns/pods/p/exec?command=%2Fledger&command=promote", "EXEC pods p exec /ledger promote: 0"},
	} {
		w, writes := parse(httptest.NewRequest(row.method, row.path, nil))
		got := ""
		if writes {
			got = w.String()
		}
		if got != row.want {
			t.Errorf("%s %s is %q, want %q", row.method, row.path, got, row.want)
		}
	}
}

// server is an API server that takes down what it is asked.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func (s *server) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// behind starts a proxy before a server.
func behind(t *testing.T, handle http.HandlerFunc) (*Proxy, *server) {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+string(body))
		s.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := serve(target, &http.Transport{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, s
}

func created(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

func post(p *Proxy, body string) (int, error) {
	answer, err := http.Post(p.URL()+"/api/v1/namespaces/ns/pods", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

func TestModes(t *testing.T) {
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			p, s := behind(t, created)
			frozen := make(chan []string, 1)
			trap := &Trap{Matches: func(w Write) bool { return w.Resource == "pods" }, At: 2, Mode: mode, Freeze: func() error {
				frozen <- s.took()
				return nil
			}}
			p.Set(trap)
			if status, err := post(p, "first"); err != nil || status != http.StatusCreated {
				t.Fatalf("the first write is let through: %d, %v", status, err)
			}
			answered := make(chan error, 1)
			go func() {
				_, err := post(p, "second")
				answered <- err
			}()
			<-trap.Sprung()
			before := []string{"POST first"}
			if mode == Unanswered {
				before = append(before, "POST second")
			}
			if got := <-frozen; !slices.Equal(got, before) {
				t.Errorf("when the process was frozen the API server had %q, want %q", got, before)
			}
			if err := trap.LetGo(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-answered; (err != nil) != (mode == Lost) {
				t.Errorf("the process was answered %v", err)
			}
			after := []string{"POST first", "POST second"}
			if mode == Lost {
				after = after[:1]
			}
			if got := s.took(); !slices.Equal(got, after) {
				t.Errorf("in the end the API server had %q, want %q", got, after)
			}
			held := p.Writes(func(w Write) bool { return w.Held })
			if len(held) != 1 || (held[0].Status == http.StatusCreated) != (mode != Lost) {
				t.Errorf("held were %v", held)
			}
			if n := p.Counted(); n != 2 {
				t.Errorf("%d writes were counted, want 2", n)
			}
		})
	}
}

func TestALateRequestIsNotAwaitedForEver(t *testing.T) {
	p, _ := behind(t, created)
	p.Set(&Trap{Mode: Late})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.trap.LetGo(ctx); err == nil {
		t.Error("no request was held, and it was answered")
	}
}

func TestAWatchIsFlushedAtOnce(t *testing.T) {
	more := make(chan struct{})
	p, _ := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "ADDED\n")
		w.(http.Flusher).Flush()
		<-more
	})
	defer close(more)
	answer, err := http.Get(p.URL() + "/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil || line != "ADDED\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestACommandPasses(t *testing.T) {
	p, _ := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = both.Flush()
		line, _ := both.ReadString('\n')
		_, _ = io.WriteString(conn, "you said "+line)
	})
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /api/v1/namespaces/ns/pods/p/exec?command=promote HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", answer, err)
	}
	defer answer.Body.Close()
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := from.ReadString('\n'); err != nil || line != "you said hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	if got := p.Writes(func(w Write) bool { return w.Method == Exec }); len(got) != 1 || got[0].Status != http.StatusSwitchingProtocols {
		t.Errorf("commands: %v", got)
	}
}

// TestAFrozenProcess writes nothing until it is woken.
func TestAFrozenProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("whether a process is frozen is read from /proc")
	}
	command := exec.Command("/bin/sh", "-c", "while read line; do echo $line; done")
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	o := &Operator{process: command.Process, ended: make(chan struct{})}
	if err := o.Freeze(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		lines <- line
	}()
	if _, err := io.WriteString(in, "hello\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-lines:
		t.Errorf("a frozen process said %q", line)
	case <-time.After(50 * time.Millisecond):
	}
	if err := o.Wake(); err != nil {
		t.Fatal(err)
	}
	if line := <-lines; line != "hello\n" {
		t.Errorf("it woke and said %q", line)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}
