package bounded

import (
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// errorLog writes at most one line in an interval of what an HTTP server says of its connections,
// with the number of those that were skipped: any pod can make a handshake fail, any number of times.
type errorLog struct {
	log      logr.Logger
	interval time.Duration
	now      func() time.Time

	mu      sync.Mutex
	last    time.Time
	skipped int
}

func newErrorLog(log logr.Logger) *errorLog {
	return &errorLog{log: log, interval: 10 * time.Second, now: time.Now}
}

// Write takes one line.
func (e *errorLog) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if now.Sub(e.last) < e.interval {
		e.skipped++
		return len(line), nil
	}
	e.log.Info("A connection failed", "problem", strings.TrimSpace(string(line)), "skipped", e.skipped)
	e.last, e.skipped = now, 0
	return len(line), nil
}
