package wal

import (
	"fmt"
	"strconv"
)

const (
	shortHeader = 24 // of a page
	longHeader  = 40 // of the first page of a segment
)

// Layout has the sizes of pages and segments of the log, in bytes.
type Layout struct {
	Page    uint64
	Segment uint64
}

// SegmentStart returns the start of the segment that contains a position.
func (l Layout) SegmentStart(at LSN) LSN { return at - at%LSN(l.Segment) }

// SegmentNumber returns the number of the segment that contains a position.
func (l Layout) SegmentNumber(at LSN) uint64 { return uint64(at) / l.Segment }

// FileName returns the name of the file with the segment that contains a position.
func (l Layout) FileName(timeline uint32, at LSN) string {
	perID := uint64(1<<32) / l.Segment
	number := l.SegmentNumber(at)
	return fmt.Sprintf("%08X%08X%08X", timeline, number/perID, number%perID)
}

// ParseFileName returns timeline and start of a segment. ok is false for all other files, such as
// histories and partial segments.
func (l Layout) ParseFileName(name string) (timeline uint32, start LSN, ok bool) {
	const digits = 8
	if len(name) != 3*digits {
		return 0, 0, false
	}
	var parts [3]uint64
	for i := range parts {
		part, err := strconv.ParseUint(name[i*digits:(i+1)*digits], 16, 32)
		if err != nil {
			return 0, 0, false
		}
		parts[i] = part
	}
	perID := uint64(1<<32) / l.Segment
	return uint32(parts[0]), LSN((parts[1]*perID + parts[2]) * l.Segment), true
}

// End returns the position after a record. A record continues on the next page, after its header.
func (l Layout) End(r Record) LSN {
	at, rest := uint64(r.Start), uint64(r.Length)
	for {
		free := l.Page - at%l.Page
		if rest <= free {
			at += rest
			break
		}
		rest -= free
		at += free
		at += l.header(at)
	}
	at = (at + alignment - 1) / alignment * alignment
	if r.Switch {
		at = (at + l.Segment - 1) / l.Segment * l.Segment
	}
	return LSN(at)
}

func (l Layout) header(page uint64) uint64 {
	if page%l.Segment == 0 {
		return longHeader
	}
	return shortHeader
}
