package bounded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode"

	"golang.org/x/sync/semaphore"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/turns"
)

// limits are the limits of a limiter. For the API server, any status other than 200 is an error, and it
// applies the failurePolicy of the webhook. So a fault of the object under review is a denial, and only
// a temporary problem is an error.
//
// Large or slow requests must not delay others. A small body is read before its request takes a turn. A
// request that is small when decoded does not wait for memory.
type limits struct {
	// body is the max number of bytes of a request. An AdmissionReview contains the object twice, and
	// the API server stores objects of up to 1.5 MiB.
	body int64
	// small is the max number of bytes of a small body. The number of concurrent small bodies is
	// limited only by the number of connections. large is the max number of concurrent larger bodies,
	// and largePeer the max for one peer.
	small, large, largePeer int64
	// memory is the max number of bytes that all requests together take when decoded, as estimated by
	// weigh. One request may take a third of it, and one object an eighth. Requests of up to light
	// bytes are not counted.
	memory, light int64
	// requests is the max number of concurrent requests, and requestsPeer the max for one peer. Other
	// requests wait, round robin by peer. In addition to requests and large, first is the number of
	// peers that can get one turn each while they have none.
	requests, requestsPeer, first int64
	// wait is the max time to wait for a turn, read the max time to receive the body, and work the max
	// time of the request. turnedAway is the delay of the response to a caller that is not admitted.
	wait, read, work, turnedAway time.Duration
}

// webhookLimits are the limits of the pod webhooks, and also those of the other webhooks. Together they
// fit into the memory limit in config/manager, as test/hostile verifies.
var webhookLimits = limits{
	body: 3 << 20, small: 64 << 10, large: 12, largePeer: 8,
	memory: 128 << 20, light: 1 << 20, requests: 16, requestsPeer: 12, first: 8,
	wait: 5 * time.Second, read: 5 * time.Second, work: 10 * time.Second, turnedAway: time.Second,
}

// plainLimits are for requests without a body, such as metrics and probes.
var plainLimits = limits{
	body: 4 << 10, small: 4 << 10, large: 1, largePeer: 1,
	memory: 1 << 20, light: 64 << 10, requests: 16, requestsPeer: 8, first: 4,
	wait: 5 * time.Second, read: 5 * time.Second, work: 30 * time.Second,
}

// limited returns a handler with these limits.
func limited(handler http.Handler, l limits) http.Handler {
	return newLimiter(handler, l, semaphore.NewWeighted(l.memory), true)
}

// newLimiter returns a handler with these limits. Limiters with the same memory share it.
func newLimiter(handler http.Handler, l limits, memory *semaphore.Weighted, denies bool) *limiter {
	return &limiter{denies: denies, handler: handler, limits: l, decoded: memory,
		arriving: turns.New(l.large, l.largePeer, l.first), working: turns.New(l.requests, l.requestsPeer, l.first)}
}

// limiter is a handler that enforces limits before it calls another handler.
type limiter struct {
	limits
	// denies turns a fault of the object under review into a denial. It is false for the pod webhooks:
	// they let unmanaged pods pass unchanged, and policies reject pods that need the webhook.
	denies  bool
	handler http.Handler
	// arriving limits large bodies, and working limits all requests.
	arriving, working *turns.Turns
	decoded           *semaphore.Weighted
}

// ServeHTTP reads the body, estimates its decoded size, and waits for a turn and for memory. It rejects
// the request if it does not get them.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), l.work)
	defer stop()
	peer := hostOf(r.RemoteAddr)
	if r.ContentLength > l.small || r.ContentLength < 0 { // -1 means unknown
		leave, err := l.arriving.Enter(ctx, peer, l.wait)
		if err != nil {
			http.Error(w, "too many concurrent large requests: try again", http.StatusTooManyRequests)
			return
		}
		defer leave()
	}
	body, err := l.readBody(w, r)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("the request has more than %d bytes: make the object smaller", l.body), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the request body is incomplete", http.StatusBadRequest)
		return
	}
	// Decoders treat any other body as YAML. weigh cannot estimate YAML, because a list element takes
	// only two bytes of it.
	if len(body) > 0 && !isObject(body) {
		http.Error(w, "the request body is not a JSON object", http.StatusUnsupportedMediaType)
		return
	}
	weight, isNew := l.weighReview(body)
	if isNew && l.denies {
		deny(w, body, http.StatusRequestEntityTooLarge, "the object has too many elements: make its lists shorter")
		return
	}
	if weight > l.memory/3 {
		http.Error(w, "the objects have too many elements", http.StatusRequestEntityTooLarge)
		return
	}
	if weight > l.light {
		if acquire(ctx, l.decoded, weight, l.wait) != nil {
			http.Error(w, "too many concurrent large requests: try again", http.StatusTooManyRequests)
			return
		}
		defer l.decoded.Release(weight)
	}
	leave, err := l.working.Enter(ctx, peer, l.wait)
	if err != nil {
		http.Error(w, "too many concurrent requests: try again", http.StatusTooManyRequests)
		return
	}
	defer leave()
	if err := bounds.Quantities(body); err != nil {
		if l.denies && isOfNew(body, func(object []byte) bool { return bounds.Quantities(object) != nil }) {
			deny(w, body, http.StatusBadRequest, "the request "+err.Error())
			return
		}
		http.Error(w, "the request "+err.Error(), http.StatusBadRequest)
		return
	}
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.handler.ServeHTTP(w, r)
}

// weighReview estimates the number of bytes that a review takes when decoded. It reports whether the
// new object alone exceeds the limit of one object. The parts of managed fields are not counted,
// because these are decoded as bytes.
func (l *limiter) weighReview(body []byte) (weight int64, isNew bool) {
	weight = weigh(body)
	if weight <= l.light {
		return weight, false
	}
	now, before, ok := objectsOf(body)
	if !ok {
		return weight, false
	}
	managedNow, managedBefore := managedParts(now), managedParts(before)
	isNew = weigh(now)-managedNow > l.memory/8 && weigh(before)-managedBefore <= l.memory/8
	return weight - managedNow - managedBefore, isNew
}

// acquire acquires n from a semaphore. It waits for at most the given time.
func acquire(ctx context.Context, from *semaphore.Weighted, n int64, wait time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	return from.Acquire(ctx, n)
}

// readBody reads the complete body of a request. A slow sender holds its turn only until the read
// deadline.
func (l *limiter) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// The ResponseWriters of tests do not support deadlines.
	_ = connection.SetReadDeadline(time.Now().Add(l.read))
	var body bytes.Buffer
	body.Grow(int(max(0, min(r.ContentLength, l.body)) + bytes.MinRead))
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, l.body)); err != nil {
		// The server discards the rest of the body, until the deadline.
		w.Header().Set("Connection", "close")
		return nil, err
	}
	// Without a deadline, the server detects when the client disconnects, and cancels the context.
	_ = connection.SetReadDeadline(time.Time{})
	return body.Bytes(), nil
}

// isObject reports whether a body is read as a JSON object. It uses the same rule as Kubernetes
// (apimachinery's yaml.IsJSONBuffer).
func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeftFunc(body, unicode.IsSpace), []byte{'{'})
}

// weigh estimates the number of bytes that a body takes when decoded, including copies. A list element
// can take five bytes of JSON, and 1 KiB as an empty container. Each element except the first follows a
// comma, and each non-empty element has a brace.
func weigh(body []byte) int64 {
	return 8*int64(len(body)) + partWeight*parts(body)
}

// partWeight is the max number of bytes that a list element takes when decoded.
const partWeight = 1024

// parts returns an upper bound of the number of objects, lists and their elements in a JSON body.
func parts(body []byte) int64 {
	return int64(bytes.Count(body, []byte{','}) + bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['}))
}
