package bounded

import (
	"context"
	"crypto"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/stateful-operator/stateful-operator/controllers/internal/turns"
)

// few are small limits for tests.
var few = limits{body: 1000, small: 500, large: 2, largePeer: 1, memory: 90 << 10, light: 1000, requests: 3, requestsPeer: 2, first: 1,
	wait: 50 * time.Millisecond, read: 50 * time.Millisecond, work: time.Minute}

// post sends a body as the given peer, and returns the status code.
func post(handler http.Handler, peer string, body string) int {
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	request.RemoteAddr = peer + ":40000"
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer.Code
}

// N2: with failurePolicy Ignore, the API server skips a webhook that returns a status other than 200.
// So a fault of the object under review is a denial.
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
		{"one quantity", review(`"object":{"spec":{"requests":{"storage":"1e9999"}}}`), http.StatusOK, true},
		{"too many elements", review(`"object":[` + strings.Repeat("0,", 110) + `0]`), http.StatusOK, true},
		{"the max number of elements, one of them changed", review(`"object":[` + strings.Repeat("0,", 30) + `0],"oldObject":[` + strings.Repeat("0,", 30) + `0]`), http.StatusNotFound, false},
		{"too many elements, as many as the stored object", review(`"object":[` + strings.Repeat("0,", 160) + `0],"oldObject":[` + strings.Repeat("0,", 160) + `0]`), http.StatusRequestEntityTooLarge, false},
		{"too many elements, more than the stored object", review(`"object":[` + strings.Repeat("0,", 160) + `0],"oldObject":[` + strings.Repeat("0,", 20) + `0]`), http.StatusOK, true},
		{"many managed fields", review(`"object":{"metadata":{"managedFields":[{"manager":"a","fieldsV1":{` + strings.TrimSuffix(strings.Repeat(`"f:a":{},`, 160), ",") + `}}]}}`), http.StatusNotFound, false},
		{"many field managers", review(`"object":{"metadata":{"managedFields":[` + strings.Repeat(`{},`, 160) + `{}]}}`), http.StatusOK, true},
		{"many field managers in a string", review(`"object":{"metadata":{"managedFields":[{"manager":"` + strings.Repeat(`{},`, 160) + `"}]}}`), http.StatusNotFound, false},
		{"a quantity equal to the stored one", review(`"object":{"requests":{"storage":"1e9999"}},"oldObject":{"requests":{"storage":"1e9999"}}`), http.StatusBadRequest, false},
		{"a quantity that was added", review(`"object":{"requests":{"storage":"1e9999"}},"oldObject":{"requests":{"storage":"1"}}`), http.StatusOK, true},
		{"a quantity in an object that is not a review", `{"requests":{"storage":"1e9999"}}`, http.StatusBadRequest, false},
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
		{"exactly the limit", "{" + strings.Repeat("x", 999), http.StatusOK},
		{"above the limit", "{" + strings.Repeat("x", 1000), http.StatusRequestEntityTooLarge},
		{"exactly the max number of elements", parts(29), http.StatusOK}, // each part takes 1 KiB and 8 bytes; 30 KiB are allowed
		{"one element more than the max", parts(30), http.StatusRequestEntityTooLarge},
		{"a quantity that needs too much memory", `{"requests":{"storage":"12345678901234567890e2000000000"}}`, http.StatusBadRequest},
		{"YAML, whose size cannot be estimated", "containers:\n" + strings.Repeat("-\n", 100), http.StatusUnsupportedMediaType},
		{"a list, which is parsed as YAML", "[" + strings.Repeat("0,", 10) + "0]", http.StatusUnsupportedMediaType},
		{"an object after whitespace", " \n\t{}", http.StatusOK},
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

// held returns a handler whose requests block until end is closed.
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
	g.Expect(post(handler, "10.0.0.1", "")).To(Equal(http.StatusTooManyRequests), "the peer has two requests in progress")
	go post(handler, "10.0.0.2", "")
	g.Expect(<-began).To(Equal("10.0.0.2"), "another peer gets the third slot")
	go post(handler, "10.0.0.3", "")
	g.Expect(<-began).To(Equal("10.0.0.3"), "three slots are in use, and a peer without a slot gets one more")
	g.Expect(post(handler, "10.0.0.2", "")).To(Equal(http.StatusTooManyRequests), "the slot of the second peer")
	g.Expect(post(handler, "10.0.0.4", "")).To(Equal(http.StatusTooManyRequests), "four slots are in use")
	close(end)
	g.Eventually(handler.(*limiter).working.Known).Should(BeZero(), "entries of disconnected peers are removed")
}

func TestDecodedBodiesShareTheirMemory(t *testing.T) {
	g := NewWithT(t)
	began, end := make(chan string), make(chan struct{})
	l := few
	l.requests, l.requestsPeer = 9, 9
	handler := limited(held(began, end), l)
	large := "{" + strings.Repeat(",", 28) // nearly a third of the memory
	for range 3 {
		go post(handler, "10.0.0.1", large)
		<-began
	}
	g.Expect(post(handler, "10.0.0.1", large)).To(Equal(http.StatusTooManyRequests))
	go post(handler, "10.0.0.1", "")
	g.Eventually(began).Should(Receive(), "a small request fits")
	close(end)
}

// The semaphore is first come, first served. Small requests must not queue behind large ones.
func TestALightRequestPassesThoseThatWaitForMemory(t *testing.T) {
	g := NewWithT(t)
	began, end := make(chan string), make(chan struct{})
	l := few
	l.requests, l.requestsPeer, l.wait = 5, 5, time.Minute
	handler := limited(held(began, end), l)
	large := "{" + strings.Repeat(",", 28) // nearly a third of the memory
	for range 3 {
		go post(handler, "10.0.0.1", large)
		<-began
	}
	for range 9 {
		go post(handler, "10.0.0.1", large)
	}
	g.Consistently(began).ShouldNot(Receive(), "no memory is left for another large request")
	for range 2 {
		go post(handler, "10.0.0.1", "")
		g.Eventually(began).Should(Receive(), "a small request fits and gets a slot")
	}
	go func() {
		for range began { // the nine large requests
		}
	}()
	close(end)
	g.Eventually(handler.(*limiter).working.Known).Should(BeZero())
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
		g.Eventually(read).Should(BeClosed(), "a body of %d bytes was blocked by others", size)
		return end
	}
	var ends []*io.PipeWriter
	for range 10 {
		ends = append(ends, slow(l.small))
	}
	for range 2 {
		ends = append(ends, slow(-1))
	}
	g.Expect(send(l.small, strings.NewReader("{}"))).To(Equal(http.StatusOK), "a small request")
	g.Expect(send(l.small+1, strings.NewReader("{}"))).To(Equal(http.StatusTooManyRequests), "a third large request")
	for _, end := range ends {
		end.Close()
	}
	all.Wait()
	g.Expect(send(l.small+1, strings.NewReader("{}"))).To(Equal(http.StatusOK), "memory was released")
}

// listening serves a handler on a free port, and returns its address.
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
	address := listening(t, limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the whole body was read") }), few))
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
	g.Consistently(ended, 2*few.read).ShouldNot(BeClosed(), "the deadline of the body does not apply afterwards")
	connection.Close()
	g.Eventually(ended).Should(BeClosed())
}

func TestConnectionsAreBounded(t *testing.T) {
	g := NewWithT(t)
	l := newListener(nil, 8)
	for range 4 {
		g.Expect(l.enter("a")).To(BeTrue())
	}
	g.Expect(l.enter("a")).To(BeFalse(), "a peer may use four of eight slots")
	for range 2 {
		g.Expect(l.enter("b")).To(BeTrue())
	}
	g.Expect(l.enter("b")).To(BeFalse(), "a second peer gets two of the other four")
	g.Expect(l.enter("c")).To(BeTrue(), "a third peer gets one slot")
	g.Expect(l.enter("d")).To(BeTrue(), "a fourth peer gets one slot")
	g.Expect(l.enter("e")).To(BeFalse(), "all eight slots are in use")
	l.leave("a")
	g.Expect(l.enter("a")).To(BeFalse(), "the peer has three slots and one is free")
	g.Expect(l.enter("e")).To(BeTrue())

	l = newListener(nil, 1280)
	for peer := range 30 {
		for l.enter(string(rune('A' + peer))) { // until its limit is reached
		}
	}
	g.Expect(l.enter("a")).To(BeTrue(), "thirty peers at their limit leave slots free")

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
	g.Expect(err).To(MatchError(io.EOF), "the fourth connection is closed")
	open[0].Close()
	g.Eventually(func() error {
		answer, err := http.Get("http://" + address)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}).Should(Succeed(), "a closed connection releases its slot")
}

// one admits paths that begin with its token.
type one string

func (token one) Admit(path string) (string, bool) { return strings.CutPrefix(path, "/"+string(token)) }

// N9: callers that are not admitted take no turn. Reviews of objects take no turn of the pod webhooks.
func TestN9TheWebhooksOfPodsHaveTurnsOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	began, end := make(chan string), make(chan struct{})
	l := few
	l.requests, l.requestsPeer, l.first = 1, 1, 0
	s := &Webhooks{callers: one("secret"), pods: []string{"/pods"}}
	handler := s.lanes(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- r.URL.Path
		<-end
	}), l)
	ask := func(path string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")))
		return answer.Code
	}
	go ask("/secret/objects")
	g.Expect(<-began).To(Equal("/objects"))
	g.Expect(ask("/secret/objects")).To(Equal(http.StatusTooManyRequests))
	g.Expect(ask("/pods")).To(Equal(http.StatusNotFound), "an unauthenticated client")
	go ask("/secret/pods")
	g.Expect(<-began).To(Equal("/pods"))
	close(end)
}

// The pod webhooks let unmanaged pods pass unchanged, however many parts they have. Other objects are
// denied.
func TestThePodsOfOthersAreNotDenied(t *testing.T) {
	g := NewWithT(t)
	wide := few
	wide.body, wide.small, wide.memory = 10<<10, 10<<10, 300<<10
	s := &Webhooks{callers: one("secret"), pods: []string{"/pods"}}
	handler := s.lanes(http.NotFoundHandler(), wide)
	ask := func(path, object string) int {
		answer := httptest.NewRecorder()
		body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","object":` + object + `}}`
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/secret"+path, strings.NewReader(body)))
		return answer.Code
	}
	for _, object := range []string{"[" + strings.Repeat("0,", 200) + "0]", `{"requests":{"storage":"1e9999"}}`} {
		g.Expect(ask("/objects", object)).To(Equal(http.StatusOK), "a denied request")
		g.Expect(ask("/pods", object)).To(BeElementOf(http.StatusRequestEntityTooLarge, http.StatusBadRequest), "a failed authentication is skipped")
	}
}

// N9c: failed handshakes do not flood the log.
func TestN9FailedConnectionsFillNoLog(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	now := time.Unix(1000, 0)
	e := newErrorLog(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	e.now = func() time.Time { return now }
	for range 1000 {
		_, err := e.Write([]byte("http: TLS handshake error\n"))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(lines).To(HaveLen(1))
	now = now.Add(e.interval)
	_, _ = e.Write([]byte("again"))
	g.Expect(lines).To(HaveLen(2))
	g.Expect(lines[1]).To(ContainSubstring(`"skipped"=999`))
}

// N9: a peer without a valid token causes at most one review per second.
func TestN9ARefusedPeerRests(t *testing.T) {
	g, asked, status := NewWithT(t), 0, http.StatusInternalServerError
	now := time.Unix(1000, 0)
	handler := AfterRefusal(time.Second, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(status)
	}))
	handler.(*refusals).now = func() time.Time { return now }
	g.Expect(post(handler, "10.0.0.1", "")).To(Equal(http.StatusInternalServerError))
	g.Expect(post(handler, "10.0.0.1", "")).To(Equal(http.StatusTooManyRequests))
	g.Expect(asked).To(Equal(1))
	status = http.StatusOK
	g.Expect(post(handler, "10.0.0.2", "")).To(Equal(http.StatusOK), "another peer")
	now = now.Add(time.Second)
	for range 2 {
		g.Expect(post(handler, "10.0.0.1", "")).To(Equal(http.StatusOK), "one second later")
	}
	status = http.StatusForbidden
	for i := range 3 * maxRefused {
		now = now.Add(time.Millisecond)
		post(handler, fmt.Sprint("10.1.0.", i), "")
	}
	g.Expect(len(handler.(*refusals).until)).To(BeNumerically("<=", maxRefused), "expired entries are removed")
}

// N9: signatures for handshakes are assigned round robin by peer.
func TestN9HandshakesAreFair(t *testing.T) {
	g := NewWithT(t)
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, key)
	g.Expect(err).NotTo(HaveOccurred())
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() {
		_ = server.Serve(tls.NewListener(inner, fairHandshakes(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})))
	}()
	defer server.Close()
	connection, err := tls.Dial("tcp", inner.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	g.Expect(err).NotTo(HaveOccurred())
	connection.Close()

	_, err = fairHandshakes(&tls.Config{}).GetCertificate(nil)
	g.Expect(err).To(HaveOccurred(), "no certificate")
	signing := turns.New(1, 1, 0)
	_, err = signing.Enter(t.Context(), "a", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	gone, stop := context.WithCancel(t.Context())
	stop()
	_, err = (&fairSigner{Signer: pair.PrivateKey.(crypto.Signer), ctx: gone, peer: "b", turns: signing}).Sign(nil, nil, nil)
	g.Expect(err).To(MatchError(context.Canceled), "another peer has the slot")
}
