package bounded

import (
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// errorLog logs at most one connection error of an HTTP server per interval, with the number of skipped
// errors. Any pod can cause any number of failed handshakes.
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

// Write logs or skips one line.
func (e *errorLog) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if now.Sub(e.last) < e.interval {
		e.skipped++
		return len(line), nil
	}
	e.log.Info("Connection failed", "problem", strings.TrimSpace(string(line)), "skipped", e.skipped)
	e.last, e.skipped = now, 0
	return len(line), nil
}
