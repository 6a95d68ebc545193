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
)

// limits of what is done at one time. An answer that is not 200 is an error to the API
// server, which then follows the webhook's failurePolicy. So what is wrong with the object of a
// review is a denial, and only what is wrong with the moment is an error.
//
// Nothing that is large or late may keep others waiting: a small body is read before its
// request takes a turn, and a request that is light when it is decoded waits for no memory.
type limits struct {
	// body is the most bytes of a request. An AdmissionReview has the object twice, and the
	// API server stores objects of up to 1.5 MiB.
	body int64
	// small is the most bytes of a small body. Any number of them arrive at one time, as the
	// connections are bounded; of larger ones so many, and of one peer.
	small, large, largePeer int64
	// memory is the max of bytes that all requests take when they are decoded, estimated by
	// weigh; one request may take a third of it, and one object an eighth. Those of up to light are
	// not counted.
	memory, light int64
	// requests is the max of requests that are worked on at one time, and requestsPeer that of
	// one peer. Others wait, round robin by peer. Beside them, and beside the large ones, first
	// is the number of peers that get one each while they have none.
	requests, requestsPeer, first int64
	// wait is for a turn, read for the arrival of the body, work for the answer, and turnedAway for
	// the answer to a stranger.
	wait, read, work, turnedAway time.Duration
}

// webhookLimits are those of the webhooks of pods, and of those of objects. Both fit into the memory
// limit of config/manager together, as test/hostile shows.
var webhookLimits = limits{
	body: 3 << 20, small: 64 << 10, large: 12, largePeer: 8,
	memory: 128 << 20, light: 1 << 20, requests: 16, requestsPeer: 12, first: 8,
	wait: 5 * time.Second, read: 5 * time.Second, work: 10 * time.Second, turnedAway: time.Second,
}

// plainLimits are for requests without a body: metrics, probes.
var plainLimits = limits{
	body: 4 << 10, small: 4 << 10, large: 1, largePeer: 1,
	memory: 1 << 20, light: 64 << 10, requests: 16, requestsPeer: 8, first: 4,
	wait: 5 * time.Second, read: 5 * time.Second, work: 30 * time.Second,
}

// limited gives a handler these bounds.
func limited(handler http.Handler, l limits) http.Handler {
	return newLimiter(handler, l, semaphore.NewWeighted(l.memory), true)
}

// newLimiter returns a handler with these bounds. Those with one memory share it.
func newLimiter(handler http.Handler, l limits, memory *semaphore.Weighted, denies bool) *limiter {
	return &limiter{denies: denies, handler: handler, limits: l, decoded: memory,
		arriving: newTurns(l.large, l.largePeer, l.first), working: newTurns(l.requests, l.requestsPeer, l.first)}
}

type limiter struct {
	limits
	// denies makes a fault of the object of a review a denial. It is false for the webhooks of pods:
	// they let pods of others pass as they are, and those that need them are refused by policies.
	denies  bool
	handler http.Handler
	// arriving are the turns of large bodies, and working those of all requests.
	arriving, working *turns
	decoded           *semaphore.Weighted
}

func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), l.work)
	defer stop()
	peer := hostOf(r.RemoteAddr)
	if r.ContentLength > l.small || r.ContentLength < 0 { // -1 is not known
		leave, err := l.arriving.enter(ctx, peer, l.wait)
		if err != nil {
			http.Error(w, "too many large requests at one time: try again", http.StatusTooManyRequests)
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
		http.Error(w, "the request did not arrive whole", http.StatusBadRequest)
		return
	}
	// What decodes requests takes all else for YAML, which nothing here can weigh: an element
	// of a list takes two bytes of it.
	if len(body) > 0 && !isObject(body) {
		http.Error(w, "the request is no JSON object", http.StatusUnsupportedMediaType)
		return
	}
	weight, isNew := l.weighReview(body)
	if isNew && l.denies {
		deny(w, body, http.StatusRequestEntityTooLarge, "the object has too many parts: make its lists shorter")
		return
	}
	if weight > l.memory/3 {
		http.Error(w, "the objects have too many parts", http.StatusRequestEntityTooLarge)
		return
	}
	if weight > l.light {
		if acquire(ctx, l.decoded, weight, l.wait) != nil {
			http.Error(w, "too many large requests at one time: try again", http.StatusTooManyRequests)
			return
		}
		defer l.decoded.Release(weight)
	}
	leave, err := l.working.enter(ctx, peer, l.wait)
	if err != nil {
		http.Error(w, "too many requests at one time: try again", http.StatusTooManyRequests)
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

// weighReview estimates the bytes that a review takes when it is decoded, and reports whether its new object
// alone takes more than one may. Managed fields are decoded as bytes, so their parts are not counted.
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

// acquire waits no longer than that.
func acquire(ctx context.Context, from *semaphore.Weighted, n int64, wait time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	return from.Acquire(ctx, n)
}

// readBody reads all of a request. One that sends slowly holds its turn no longer than it
// may.
func (l *limiter) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// A writer of a test has no deadline.
	_ = connection.SetReadDeadline(time.Now().Add(l.read))
	var body bytes.Buffer
	body.Grow(int(max(0, min(r.ContentLength, l.body)) + bytes.MinRead))
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, l.body)); err != nil {
		// The server reads what is left, which the deadline ends.
		w.Header().Set("Connection", "close")
		return nil, err
	}
	// Without one again, the server sees when the caller goes, and ends the context.
	_ = connection.SetReadDeadline(time.Time{})
	return body.Bytes(), nil
}

// isObject reports whether a body is read as a JSON object, as Kubernetes decides it
// (apimachinery's yaml.IsJSONBuffer).
func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeftFunc(body, unicode.IsSpace), []byte{'{'})
}

// weigh estimates the bytes that a body takes when it is decoded, with its copies. An element
// of a list may take five bytes of JSON, and 1 KiB as an empty container. Each but the first
// has a comma before it, and each that has something in it a brace.
func weigh(body []byte) int64 {
	return 8*int64(len(body)) + partWeight*parts(body)
}

// partWeight is the max of bytes that an element of a list takes when it is decoded.
const partWeight = 1024

func parts(body []byte) int64 {
	return int64(bytes.Count(body, []byte{','}) + bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['}))
}
