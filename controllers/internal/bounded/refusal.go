package bounded

import (
	"net/http"
	"sync"
	"time"
)

// maxRefused is the number of remembered addresses above which each refusal removes the expired ones.
const maxRefused = 1024

// refusals responds with 429 to a peer for a while after a refusal. So a peer without a valid token
// causes at most one review by the API server in that time.
type refusals struct {
	next http.Handler
	rest time.Duration
	now  func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
}

// AfterRefusal returns a handler that responds with 429 to a peer for the time rest after a response of
// 401, 403 or 500. A 500 means that the authorization check itself failed.
func AfterRefusal(rest time.Duration, next http.Handler) http.Handler {
	return &refusals{next: next, rest: rest, now: time.Now, until: map[string]time.Time{}}
}

func (h *refusals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := hostOf(r.RemoteAddr)
	if h.rests(peer) {
		http.Error(w, "too many refused requests: try again later", http.StatusTooManyRequests)
		return
	}
	answer := &statusWriter{ResponseWriter: w}
	h.next.ServeHTTP(answer, r)
	switch answer.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError:
		h.refuse(peer)
	}
}

// rests reports whether a peer was refused recently.
func (h *refusals) rests(peer string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now().Before(h.until[peer])
}

// refuse records a refusal of a peer.
func (h *refusals) refuse(peer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if len(h.until) >= maxRefused {
		for one, until := range h.until {
			if !now.Before(until) {
				delete(h.until, one)
			}
		}
	}
	h.until[peer] = now.Add(h.rest)
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is used by http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
