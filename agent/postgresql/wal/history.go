package wal

import (
	"fmt"
	"strconv"
	"strings"
)

// Span is the part of a history that was written on one timeline.
type Span struct {
	Timeline   uint32
	Begin, End LSN // End is MaxLSN for the last timeline
}

// MaxLSN is the end of a span that has not ended.
const MaxLSN = ^LSN(0)

// History is the list of timelines of a copy, oldest first.
type History []Span

// ParseHistory returns the history that ends with a timeline. text is the content of its history file,
// which the first timeline does not have.
func ParseHistory(timeline uint32, text string) (History, error) {
	var history History
	begin := LSN(0)
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("the history of timeline %d has an unexpected line: %q", timeline, line)
		}
		id, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the history of timeline %d has an unexpected line: %q", timeline, line)
		}
		end, err := ParseLSN(fields[1])
		if err != nil {
			return nil, fmt.Errorf("the history of timeline %d: %w", timeline, err)
		}
		history = append(history, Span{Timeline: uint32(id), Begin: begin, End: end})
		begin = end
	}
	return append(history, Span{Timeline: timeline, Begin: begin, End: MaxLSN}), nil
}

// HistoryFile returns the name of the file with the history of a timeline.
func HistoryFile(timeline uint32) string { return fmt.Sprintf("%08X.history", timeline) }

// ParseHistoryFile returns the timeline of a history file. ok is false for all other files.
func ParseHistoryFile(name string) (timeline uint32, ok bool) {
	digits, isHistory := strings.CutSuffix(name, ".history")
	id, err := strconv.ParseUint(digits, 16, 32)
	if !isHistory || err != nil || len(digits) != 8 {
		return 0, false
	}
	return uint32(id), true
}

// Find returns the span of a timeline.
func (h History) Find(timeline uint32) (Span, bool) {
	for _, span := range h {
		if span.Timeline == timeline {
			return span, true
		}
	}
	return Span{}, false
}

// At returns the timeline on which the record at a position was written.
func (h History) At(start LSN) uint32 {
	timeline := h[0].Timeline
	for _, span := range h {
		if start >= span.Begin {
			timeline = span.Timeline
		}
	}
	return timeline
}

// Until returns the history with an end for its last timeline.
func (h History) Until(end LSN) History {
	closed := append(History{}, h...)
	closed[len(closed)-1].End = end
	return closed
}

// Fork returns the last timeline that two histories share, and the position at which they separate. A
// shared timeline has the same number and the same begin, but may still be another one. ok is false if
// they share none.
func Fork(a, b History) (timeline uint32, at LSN, ok bool) {
	for i := range min(len(a), len(b)) {
		if a[i].Timeline != b[i].Timeline || a[i].Begin != b[i].Begin {
			break
		}
		timeline, at, ok = a[i].Timeline, min(a[i].End, b[i].End), true
	}
	return timeline, at, ok
}
