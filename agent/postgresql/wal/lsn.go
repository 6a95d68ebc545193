// Package wal computes positions in the write-ahead log of PostgreSQL, and reads the output of its
// programs. It has no side effects.
package wal

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in the log, in bytes.
type LSN uint64

// ParseLSN parses a position as PostgreSQL prints it, such as 16/B374D848.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, errHigh := strconv.ParseUint(high, 16, 32)
	l, errLow := strconv.ParseUint(low, 16, 32)
	if !ok || errHigh != nil || errLow != nil {
		return 0, fmt.Errorf("%q is not a position in the log", text)
	}
	return LSN(h<<32 | l), nil
}

// String formats a position as PostgreSQL does.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&0xffffffff) }

const (
	alignment     = 8
	alignmentBits = 3
	positionBits  = 48

	maxTimeline = 1<<(64-positionBits) - 1
	maxPosition = 1<<(positionBits+alignmentBits) - alignment
)

// Number returns the output of command sequence: 16 bits of timeline, then 48 bits of position. Records
// are aligned to 8 bytes, so that 48 bits are sufficient for 2 PiB of log. A timeline or a position that
// does not fit is an error, because a truncated number would order copies incorrectly.
func Number(timeline uint32, at LSN) (uint64, error) {
	if timeline == 0 || timeline > maxTimeline {
		return 0, fmt.Errorf("timeline %d is not between 1 and %d", timeline, uint64(maxTimeline))
	}
	if at > maxPosition {
		return 0, fmt.Errorf("position %s is above the max %s", at, LSN(maxPosition))
	}
	return uint64(timeline)<<positionBits | uint64(at)>>alignmentBits, nil
}
