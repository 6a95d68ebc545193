package lease

import (
	"fmt"
	"time"
)

const (
	maxQueuedLines = 64
	// flushLimit limits how long the end of the process waits for the log.
	flushLimit = 50 * time.Millisecond
)

// Log writes lines in the background, because a log that is not read must not delay renewals, signals or the
// end. It drops lines while too many wait.
type Log struct{ entries chan entry }

// entry is a line, or a mark that is closed when all lines before were written.
type entry struct {
	line string
	mark chan struct{}
}

// NewLog returns a log that writes with a function.
func NewLog(write func(line string)) *Log {
	l := &Log{entries: make(chan entry, maxQueuedLines)}
	go func() {
		for e := range l.entries {
			if e.mark != nil {
				close(e.mark)
				continue
			}
			write(e.line)
		}
	}()
	return l
}

// Printf writes a line.
func (l *Log) Printf(format string, args ...any) {
	select {
	case l.entries <- entry{line: fmt.Sprintf(format, args...)}:
	default:
	}
}

// Flush waits a moment until all lines are written.
func (l *Log) Flush() {
	mark := make(chan struct{})
	select {
	case l.entries <- entry{mark: mark}:
	default:
		return
	}
	select {
	case <-mark:
	case <-time.After(flushLimit):
	}
}
