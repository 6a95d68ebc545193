package lease

import (
	"strings"
	"sync"
	"testing"
)

func TestLogWritesInOrder(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	l := NewLog(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	})
	l.Printf("%d", 1)
	l.Printf("%d", 2)
	l.Flush()
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(lines, " "); got != "1 2" {
		t.Errorf("the log is %q", got)
	}
}

// A log that is not read blocks its writer.
func TestALogThatIsNotReadBlocksNothing(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	l := NewLog(func(string) { <-block })
	for range 2 * maxQueuedLines {
		l.Printf("line")
	}
	l.Flush()
	<-l.entries // a place for the mark
	l.Flush()
}
