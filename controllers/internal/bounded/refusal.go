package bounded

import (
	"net/http"
	"sync"
	"time"
)

// maxRefused is the max of addresses that are remembered. Beyond it those whose time is over are
// forgotten at each refusal.
const maxRefused = 1024

// refusals answers 429 to a peer for a while after it was refused, so that a peer without a valid token
// costs the API server one review in that time.
type refusals struct {
	next http.Handler
	rest time.Duration
	now  func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
}

// AfterRefusal returns a handler that gives a peer nothing but 429 for that time after an answer that says
// that it may not ask, or that who may could not be found out.
func AfterRefusal(rest time.Duration, next http.Handler) http.Handler {
	return &refusals{next: next, rest: rest, now: time.Now, until: map[string]time.Time{}}
}

func (h *refusals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := hostOf(r.RemoteAddr)
	if h.rests(peer) {
		http.Error(w, "you were refused a moment ago: try again later", http.StatusTooManyRequests)
		return
	}
	answer := &statusWriter{ResponseWriter: w}
	h.next.ServeHTTP(answer, r)
	switch answer.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError:
		h.refuse(peer)
	}
}

func (h *refusals) rests(peer string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now().Before(h.until[peer])
}

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

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is what http.ResponseController looks for.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
