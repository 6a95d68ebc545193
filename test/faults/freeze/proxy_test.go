package freeze

import (
	"bufio"
	"context"
	"io"
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

	"github.com/gorilla/websocket"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		method, path string
		want         string // empty if it is not a write
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
		NewWithT(t).Expect(got).To(Equal(row.want), "%s %s", row.method, row.path)
	}
}

// server is an API server that records its requests.
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

// behind starts a proxy for a server.
func behind(t *testing.T, handle http.HandlerFunc) (*Proxy, *server) {
	t.Helper()
	g := NewWithT(t)
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
	g.Expect(err).NotTo(HaveOccurred())
	p, err := serve(target, &http.Transport{})
	g.Expect(err).NotTo(HaveOccurred())
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
	one, two := []string{"POST first"}, []string{"POST first", "POST second"}
	for mode, had := range map[Mode]struct{ frozen, after []string }{Lost: {one, one}, Unanswered: {two, two}, Late: {one, two}} {
		t.Run(string(mode), func(t *testing.T) {
			g := NewWithT(t)
			p, s := behind(t, created)
			frozen := make(chan []string, 1)
			trap := &Trap{Matches: func(w Write) bool { return w.Resource == "pods" }, At: 2, Mode: mode, Freeze: func() error {
				frozen <- s.took()
				return nil
			}}
			p.Set(trap)
			g.Expect(post(p, "first")).To(Equal(http.StatusCreated), "the first write passes")
			answered := make(chan error, 1)
			go func() {
				_, err := post(p, "second")
				answered <- err
			}()
			<-trap.Sprung()
			g.Expect(<-frozen).To(Equal(had.frozen), "the API server's objects while the process was frozen")
			g.Expect(trap.LetGo(t.Context())).To(Succeed())
			g.Expect(<-answered != nil).To(Equal(mode == Lost), "whether the process got an error")
			g.Expect(s.took()).To(Equal(had.after), "the API server's objects at the end")
			held := p.Writes(func(w Write) bool { return w.Held })
			g.Expect(held).To(HaveLen(1))
			g.Expect(held[0].Status == http.StatusCreated).To(Equal(mode != Lost), "%v", held)
			g.Expect(p.Counted()).To(Equal(2))
		})
	}
}

func TestATrapIsDisarmedInTimeOrNot(t *testing.T) {
	for _, row := range []struct {
		before int // writes
		inTime bool
	}{{1, true}, {2, false}, {3, false}} {
		g := NewWithT(t)
		p, _ := behind(t, created)
		trap := &Trap{Matches: func(Write) bool { return true }, At: 2, Mode: Unanswered, Freeze: func() error { return nil }}
		p.Set(trap)
		for range row.before {
			g.Expect(post(p, "before")).To(Equal(http.StatusCreated))
		}
		g.Expect(p.Disarm()).To(Equal(row.inTime), "after %d writes", row.before)
		g.Expect(post(p, "after")).To(Equal(http.StatusCreated))
		select {
		case <-trap.Sprung():
			g.Expect(row.inTime).To(BeFalse(), "the trap was triggered after it was disarmed")
		default:
			g.Expect(row.inTime).To(BeTrue(), "the trap was not triggered")
		}
		g.Expect(p.Counted()).To(Equal(row.before + 1))
	}
}

func TestALateRequestIsNotAwaitedForEver(t *testing.T) {
	p, _ := behind(t, created)
	p.Set(&Trap{Mode: Late})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	NewWithT(t).Expect(p.trap.LetGo(ctx)).NotTo(Succeed(), "no request was held")
}

func TestAWatchIsFlushedAtOnce(t *testing.T) {
	g := NewWithT(t)
	more := make(chan struct{})
	p, _ := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "ADDED\n")
		w.(http.Flusher).Flush()
		<-more
	})
	defer close(more)
	answer, err := http.Get(p.URL() + "/api/v1/pods?watch=true")
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	g.Expect(bufio.NewReader(answer.Body).ReadString('\n')).To(Equal("ADDED\n"))
}

func TestACommandPasses(t *testing.T) {
	g := NewWithT(t)
	p, _ := behind(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		kind, said, _ := conn.ReadMessage()
		_ = conn.WriteMessage(kind, append([]byte("received "), said...))
	})
	exec := "ws" + strings.TrimPrefix(p.URL(), "http") + "/api/v1/namespaces/ns/pods/p/exec?command=promote"
	conn, answer, err := websocket.DefaultDialer.Dial(exec, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	defer answer.Body.Close()
	g.Expect(conn.WriteMessage(websocket.TextMessage, []byte("hello"))).To(Succeed())
	_, said, err := conn.ReadMessage()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(said)).To(Equal("received hello"))
	commands := p.Writes(func(w Write) bool { return w.Method == Exec })
	g.Expect(commands).To(HaveExactElements(HaveField("Status", http.StatusSwitchingProtocols)))
}

// TestAFrozenProcess verifies that a frozen process writes nothing until it is continued.
func TestAFrozenProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("requires /proc to check whether a process is frozen")
	}
	g := NewWithT(t)
	command := exec.Command("/bin/sh", "-c", "while read line; do echo $line; done")
	in, err := command.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	said := gbytes.NewBuffer()
	command.Stdout = said
	g.Expect(command.Start()).To(Succeed())
	o := &Operator{process: command.Process, ended: make(chan struct{})}
	g.Expect(o.Freeze()).To(Succeed())
	g.Expect(io.WriteString(in, "hello\n")).To(Equal(6))
	g.Consistently(said, 50*time.Millisecond).ShouldNot(gbytes.Say("hello"), "it is frozen")
	g.Expect(o.Wake()).To(Succeed())
	g.Eventually(said, time.Minute).Should(gbytes.Say("hello\n"), "it was resumed")
	g.Expect(in.Close()).To(Succeed())
	g.Expect(command.Wait()).To(Succeed())
}
