package bounded

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
)

// few are bounds that a test reaches.
var few = limits{body: 1000, small: 500, large: 2, largePeer: 1, memory: 90 << 10, light: 1000, requests: 3, requestsPeer: 2, first: 1,
	wait: 50 * time.Millisecond, read: 50 * time.Millisecond, work: time.Minute}

// post sends a body as a peer would, and gives the status of the answer.
func post(handler http.Handler, peer string, body string) int {
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	request.RemoteAddr = peer + ":40000"
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer.Code
}

// N2: an answer that is not 200 makes the API server skip a webhook with failurePolicy Ignore. So
// what is wrong with the object of a review is a denial.
func TestN2AFaultOfTheObjectIsADenial(t *testing.T) {
	wide := few
	wide.body, wide.small, wide.memory = 10<<10, 10<<10, 300<<10
	handler := limited(http.NotFoundHandler(), wide)
	review := func(rest string) string {
		return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"kind":{"group":"a","kind":"uid"},"uid":"u-1",` + rest + `}}`
	}
	for _, row := range []struct {
		name, body string
		status     int
		denied     bool
	}{
		{"a quantity", review(`"object":{"spec":{"requests":{"storage":"1e9999"}}}`), http.StatusOK, true},
		{"too many parts", review(`"object":[` + strings.Repeat("0,", 110) + `0]`), http.StatusOK, true},
		{"a quantity in what is no review", `{"requests":{"storage":"1e9999"}}`, http.StatusBadRequest, false},
		{"a review without a UID", `{"request":{"object":{"requests":{"storage":"1e9999"}}}}`, http.StatusBadRequest, false},
		{"a UID beyond the head", `{"request":{"a":"` + strings.Repeat("x", head) + `","uid":"u-1","object":{"requests":{"storage":"1e9999"}}}}`, http.StatusBadRequest, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := NewWithT(t)
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(row.body))
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			g.Expect(answer.Code).To(Equal(row.status))
			if !row.denied {
				return
			}
			var got admissionv1.AdmissionReview
			g.Expect(json.Unmarshal(answer.Body.Bytes(), &got)).To(Succeed())
			g.Expect(got.Kind).To(Equal("AdmissionReview"))
			g.Expect(got.Response.UID).To(BeEquivalentTo("u-1"))
			g.Expect(got.Response.Allowed).To(BeFalse())
			g.Expect(got.Response.Result.Message).NotTo(BeEmpty())
		})
	}
}

func TestABodyIsBoundedBeforeItIsDecoded(t *testing.T) {
	g := NewWithT(t)
	var seen atomic.Int32
	handler := limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		g.Expect(err).NotTo(HaveOccurred())
		seen.Store(int32(len(body)))
	}), few)
	parts := func(n int) string { return "{" + strings.Repeat(",", n-1) }
	for _, row := range []struct {
		name, body string
		status     int
	}{
		{"none", "", http.StatusOK},
		{"at the bound", "{" + strings.Repeat("x", 999), http.StatusOK},
		{"above it", "{" + strings.Repeat("x", 1000), http.StatusRequestEntityTooLarge},
		{"as many parts as may be", parts(29), http.StatusOK}, // of 1 KiB and 8 bytes, where 30 KiB may be
		{"one more", parts(30), http.StatusRequestEntityTooLarge},
		{"a quantity that takes all memory", `{"requests":{"storage":"12345678901234567890e2000000000"}}`, http.StatusBadRequest},
		{"YAML, of which nothing can be weighed", "containers:\n" + strings.Repeat("-\n", 100), http.StatusUnsupportedMediaType},
		{"a list, which is read as YAML", "[" + strings.Repeat("0,", 10) + "0]", http.StatusUnsupportedMediaType},
		{"an object after blanks", " \n\t{}", http.StatusOK},
	} {
		seen.Store(-1)
		g.Expect(post(handler, "10.0.0.1", row.body)).To(Equal(row.status), row.name)
		if row.status == http.StatusOK {
			g.Expect(seen.Load()).To(BeEquivalentTo(len(row.body)), row.name)
		} else {
			g.Expect(seen.Load()).To(BeEquivalentTo(-1), "%s reached the webhook", row.name)
		}
	}
}

// held is a handler whose requests stay until they are let go.
func held(began chan<- string, end <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- hostOf(r.RemoteAddr)
		<-end
	})
}

func TestAPeerThatSendsMuchWaitsForItself(t *testing.T) {
	g := NewWithT(t)
	began, end := make(chan string), make(chan struct{})
	handler := limited(held(began, end), few)
	for range 2 {
		go post(handler, "10.0.0.1", "")
		<-began
	}
	g.Expect(post(handler, "10.0.0.1", "")).To(Equal(http.StatusTooManyRequests), "it has two under way")
	go post(handler, "10.0.0.2", "")
	g.Expect(<-began).To(Equal("10.0.0.2"), "another peer has the third turn")
	go post(handler, "10.0.0.3", "")
	g.Expect(<-began).To(Equal("10.0.0.3"), "three are all, but one that has none gets one more")
	g.Expect(post(handler, "10.0.0.2", "")).To(Equal(http.StatusTooManyRequests), "which this one has")
	g.Expect(post(handler, "10.0.0.4", "")).To(Equal(http.StatusTooManyRequests), "four are all")
	close(end)
	g.Eventually(handler.(*limiter).working.known).Should(BeZero(), "peers that are gone are forgotten")
}

func TestDecodedBodiesShareTheirMemory(t *testing.T) {
	g := NewWithT(t)
	began, end := make(chan string), make(chan struct{})
	l := few
	l.requests, l.requestsPeer = 9, 9
	handler := limited(held(began, end), l)
	large := "{" + strings.Repeat(",", 28) // nearly a third of all
	for range 3 {
		go post(handler, "10.0.0.1", large)
		<-began
	}
	g.Expect(post(handler, "10.0.0.1", large)).To(Equal(http.StatusTooManyRequests))
	go post(handler, "10.0.0.1", "")
	g.Eventually(began).Should(Receive(), "a small one has room")
	close(end)
}

// A queue is first come, first served: what is small must not stand in that of the large.
func TestALightRequestPassesThoseThatWaitForMemory(t *testing.T) {
	g := NewWithT(t)
	began, end := make(chan string), make(chan struct{})
	l := few
	l.requests, l.requestsPeer, l.wait = 5, 5, time.Minute
	handler := limited(held(began, end), l)
	large := "{" + strings.Repeat(",", 28) // nearly a third of all
	for range 3 {
		go post(handler, "10.0.0.1", large)
		<-began
	}
	for range 9 {
		go post(handler, "10.0.0.1", large)
	}
	g.Consistently(began).ShouldNot(Receive(), "there is no memory for more")
	for range 2 {
		go post(handler, "10.0.0.1", "")
		g.Eventually(began).Should(Receive(), "a light one has room, and a turn")
	}
	go func() {
		for range began { // the nine
		}
	}()
	close(end)
	g.Eventually(handler.(*limiter).working.known).Should(BeZero())
}

func TestBodiesThatArriveSlowlyKeepNobodyWaiting(t *testing.T) {
	g := NewWithT(t)
	l := few
	l.read, l.wait, l.large, l.largePeer = time.Minute, 50*time.Millisecond, 2, 2
	handler := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), l)
	send := func(size int64, body io.Reader) int {
		request := httptest.NewRequest(http.MethodPost, "/", body)
		request.RemoteAddr, request.ContentLength = "10.0.0.1:40000", size
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
	var all sync.WaitGroup
	slow := func(size int64) *io.PipeWriter {
		body, end := io.Pipe()
		all.Go(func() { send(size, body) })
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = end.Write([]byte("x"))
		}()
		g.Eventually(read).Should(BeClosed(), "a body of %d bytes waits for others", size)
		return end
	}
	var ends []*io.PipeWriter
	for range 10 {
		ends = append(ends, slow(l.small))
	}
	for range 2 {
		ends = append(ends, slow(-1))
	}
	g.Expect(send(l.small, strings.NewReader("{}"))).To(Equal(http.StatusOK), "a small one")
	g.Expect(send(l.small+1, strings.NewReader("{}"))).To(Equal(http.StatusTooManyRequests), "a third large one")
	for _, end := range ends {
		end.Close()
	}
	all.Wait()
	g.Expect(send(l.small+1, strings.NewReader("{}"))).To(Equal(http.StatusOK), "when they are gone")
}

// listening serves a handler on a free port, and gives its address.
func listening(t *testing.T, handler http.Handler) string {
	t.Helper()
	g := NewWithT(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(newListener(inner, 6)) }()
	t.Cleanup(func() { server.Close() })
	return inner.Addr().String()
}

func TestASlowBodyEnds(t *testing.T) {
	g := NewWithT(t)
	address := listening(t, limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it came whole") }), few))
	connection, err := net.Dial("tcp", address)
	g.Expect(err).NotTo(HaveOccurred())
	defer connection.Close()
	_, err = io.WriteString(connection, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nslow")
	g.Expect(err).NotTo(HaveOccurred())
	answer, err := io.ReadAll(connection)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(answer)).To(HavePrefix("HTTP/1.1 400 "))
}

func TestWorkEndsWhenTheCallerIsGone(t *testing.T) {
	g := NewWithT(t)
	began, ended := make(chan struct{}), make(chan struct{})
	address := listening(t, limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}), few))
	connection, err := net.Dial("tcp", address)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.WriteString(connection, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{  }")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(began).Should(BeClosed())
	g.Consistently(ended, 2*few.read).ShouldNot(BeClosed(), "the deadline of the body ends nothing later")
	connection.Close()
	g.Eventually(ended).Should(BeClosed())
}

func TestConnectionsAreBounded(t *testing.T) {
	g := NewWithT(t)
	l := newListener(nil, 8)
	for range 4 {
		g.Expect(l.enter("a")).To(BeTrue())
	}
	g.Expect(l.enter("a")).To(BeFalse(), "four of eight are all of a peer")
	for range 2 {
		g.Expect(l.enter("b")).To(BeTrue())
	}
	g.Expect(l.enter("b")).To(BeFalse(), "two of the other four")
	g.Expect(l.enter("c")).To(BeTrue(), "there is one for a third")
	g.Expect(l.enter("d")).To(BeTrue(), "and for a fourth")
	g.Expect(l.enter("e")).To(BeFalse(), "eight are all")
	l.leave("a")
	g.Expect(l.enter("a")).To(BeFalse(), "it has three, and one is free")
	g.Expect(l.enter("e")).To(BeTrue())

	l = newListener(nil, 1280)
	for peer := range 30 {
		for l.enter(string(rune('A' + peer))) { // as many as it gets
		}
	}
	g.Expect(l.enter("a")).To(BeTrue(), "thirty that hold all they get leave some")

	address := listening(t, http.NotFoundHandler())
	var open []net.Conn
	for range 3 {
		connection, err := net.Dial("tcp", address)
		g.Expect(err).NotTo(HaveOccurred())
		open = append(open, connection)
	}
	tooMany, err := net.Dial("tcp", address)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = tooMany.Read(make([]byte, 1))
	g.Expect(err).To(MatchError(io.EOF), "the fourth is closed")
	open[0].Close()
	g.Eventually(func() error {
		answer, err := http.Get("http://" + address)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}).Should(Succeed(), "one that is closed makes room")
}
