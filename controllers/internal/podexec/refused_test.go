package podexec

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// served runs a command against an API server with the given handler.
func served(t *testing.T, c Command, answer http.HandlerFunc) Result {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	e, err := NewExecutor(&rest.Config{Host: server.URL}, fake.NewClientBuilder().WithObjects(running("uid", "containerd://1")).Build(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e.Run(context.Background(), c)
}

// An API server that has forwarded the command and then lost the node returns 500. A load balancer
// returns 502 or 504.
func TestOnlyARefusalProvesThatACommandWasNotSent(t *testing.T) {
	for _, row := range []struct {
		code int
		text string
		sent bool
	}{
		{http.StatusForbidden, "", false},
		{http.StatusNotFound, "", false},
		{http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not you","reason":"Forbidden","code":403}`, false},
		{http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"error dialing backend: EOF","code":500}`, true},
		{http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused","code":500}`, false},
		{http.StatusTooManyRequests, "", false},
		{http.StatusInternalServerError, "", true},
		{http.StatusInternalServerError, "error dialing backend: EOF", true},
		{http.StatusInternalServerError, "error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused", false},
		{http.StatusBadGateway, "", true},
		{http.StatusServiceUnavailable, "", true},
		{http.StatusGatewayTimeout, "", true},
	} {
		got := served(t, command("/promote"), func(w http.ResponseWriter, _ *http.Request) { http.Error(w, row.text, row.code) })
		if got.Sent != row.sent || got.Outcome != Unknown {
			t.Errorf("%d %q: %s, sent %t", row.code, row.text, tell(got), got.Sent)
		}
	}
}

func TestACommandDoesNotBeginLate(t *testing.T) {
	held := make(chan struct{})
	c := command("/promote")
	c.Decided = time.Now().Add(time.Second - Hurry) // the latest time to send it
	began := time.Now()
	got := served(t, c, func(_ http.ResponseWriter, r *http.Request) { // slow admission
		<-r.Context().Done()
		close(held)
	})
	<-held
	if got.Outcome != Unknown || !got.Sent || time.Since(began) > Hurry+MaxDial {
		t.Errorf("%s, sent %t", tell(got), got.Sent)
	}
}

func TestANodeThatIsShortOfProcessesSaysNothingOfTheProgram(t *testing.T) {
	const short = `{"status":"Failure","reason":"InternalError","message":"error executing command in container: failed to exec in container: failed to start exec \"8\": OCI runtime exec failed: exec failed: unable to start container process: fork/exec /proc/self/exe: resource temporarily unavailable"}`
	e, _, _ := node(t, func(c *websocket.Conn) { say(t, c, channelStatus, short) })
	if got := e.Run(context.Background(), command("/status")); got.Outcome != Unknown {
		t.Errorf("%s", tell(got))
	}
}
