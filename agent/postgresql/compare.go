package postgresql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/wal"
)

// action is how a copy becomes one that the primary can continue.
type action int

const (
	keepCopy action = iota
	rewindCopy
	replaceCopy
)

// comparison is the result of comparing a stopped copy with the primary.
type comparison struct {
	action action
	reason string // continues "the copy of this member"
	log    *log
}

// source is the log of the primary.
type source struct {
	conn    *pgx.Conn
	history wal.History
	layout  wal.Layout
	oldest  wal.LSN // start of the oldest segment
}

// compare reads both histories, and the bytes before the position at which they separate.
//
// Timelines with the same number may differ: two copies that do not know each other select the same
// number. pg_rewind and streaming replication do not notice that.
func (s *Server) compare(ctx context.Context, primary *pgx.Conn, host, major string) (comparison, error) {
	l, err := s.openLog(ctx, major)
	if err != nil {
		return comparison{}, err
	}
	system, src, err := s.openSource(ctx, primary, host, l.control.Layout)
	if err != nil {
		return comparison{}, fmt.Errorf("read the log of %s: %w", host, err)
	}
	if system != l.control.System {
		return comparison{}, driver.Errorf(driver.NotInstalled, "the data in %s does not belong to this set: its system identifier is %s, that of %s is %s. "+
			"Delete the folder to replace it by a copy", s.config.DataDir, l.control.System, host, system)
	}
	at, err := l.end(ctx)
	if err != nil {
		return comparison{action: replaceCopy, reason: "is damaged: " + err.Error(), log: l}, nil //nolint:nilerr // a damaged copy is replaced
	}
	if at.end < l.control.MinRecovery {
		return comparison{action: replaceCopy, reason: "is not consistent", log: l}, nil
	}
	own, err := l.history(at.timeline)
	if err != nil {
		return comparison{}, err
	}
	result, err := src.judge(ctx, l, own.Until(at.end))
	result.log = l
	return result, err
}

// judge compares a history of the copy, which ends with the copy, with that of the primary.
func (src source) judge(ctx context.Context, l *log, own wal.History) (comparison, error) {
	timeline, fork, ok := wal.Fork(own, src.history)
	last := own[len(own)-1]
	switch {
	case !ok:
		return comparison{action: replaceCopy, reason: "shares no timeline with the primary"}, nil
	case src.layout.SegmentStart(fork) < src.oldest:
		return comparison{action: replaceCopy, reason: fmt.Sprintf("needs log from %s, and the primary has it from %s", fork, src.oldest)}, nil
	}
	same, err := src.sameBytes(ctx, l, timeline, fork)
	if err != nil {
		return comparison{}, err
	}
	if !same {
		return comparison{action: replaceCopy, reason: fmt.Sprintf("has other records before %s on timeline %d", fork, timeline)}, nil
	}
	if last.Timeline == timeline && last.End <= fork {
		return comparison{action: keepCopy, reason: fmt.Sprintf("ends at %s on timeline %d, and the primary continues it", fork, timeline)}, nil
	}
	return comparison{action: rewindCopy, reason: fmt.Sprintf("separates at %s on timeline %d, and ends at %s on timeline %d",
		fork, timeline, last.End, last.Timeline)}, nil
}

// openSource returns the system identifier and the log of a primary.
func (s *Server) openSource(ctx context.Context, primary *pgx.Conn, host string, layout wal.Layout) (system string, src source, err error) {
	var file, oldest string
	err = primary.QueryRow(ctx, `select (select system_identifier::text from pg_control_system()),
		pg_walfile_name(pg_current_wal_lsn()),
		(select min(substr(name, 9)) from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$')`).Scan(&system, &file, &oldest)
	if err != nil {
		return "", source{}, err
	}
	timeline, _, ok := layout.ParseFileName(file)
	if !ok {
		return "", source{}, fmt.Errorf("unexpected file of the log %q", file)
	}
	_, start, ok := layout.ParseFileName("00000000" + oldest)
	if !ok {
		return "", source{}, fmt.Errorf("unexpected file of the log %q", oldest)
	}
	text, err := s.remoteHistory(ctx, host, timeline)
	if err != nil {
		return "", source{}, err
	}
	history, err := wal.ParseHistory(timeline, text)
	return system, source{conn: primary, history: history, layout: layout, oldest: start}, err
}

// remoteHistory returns the history file of a primary. The first timeline has none.
func (s *Server) remoteHistory(ctx context.Context, host string, timeline uint32) (string, error) {
	if timeline == 1 {
		return "", nil
	}
	rows, err := s.replicationCommand(ctx, s.remoteInfo(host), "TIMELINE_HISTORY "+strconv.FormatUint(uint64(timeline), 10))
	if err != nil {
		return "", err
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return "", errors.New("TIMELINE_HISTORY returned no row")
	}
	return string(rows[0][1]), nil
}

// comparedBytes is the max number of bytes that are compared. They contain checksums, times and
// transaction IDs.
const comparedBytes = 64 << 10

// sameBytes reports whether the bytes before a position are the same in both logs. A missing file is
// different.
func (src source) sameBytes(ctx context.Context, l *log, timeline uint32, before wal.LSN) (bool, error) {
	start := src.layout.SegmentStart(before - 1)
	if before-start > comparedBytes {
		start = before - comparedBytes
	}
	own, err := l.read(timeline, start, before)
	if err != nil || own == nil {
		return false, err
	}
	// The file may have the number of a later timeline, which repeats the records.
	for i := len(src.history) - 1; i >= 0; i-- {
		span := src.history[i]
		var theirs []byte
		name := filepath.Join("pg_wal", src.layout.FileName(span.Timeline, start))
		offset := uint64(start) % src.layout.Segment
		err := src.conn.QueryRow(ctx, "select pg_read_binary_file($1, $2, $3, true)", name, int64(offset), int64(len(own))).Scan(&theirs)
		if err != nil {
			return false, err
		}
		if theirs != nil {
			return bytes.Equal(own, theirs), nil
		}
		if span.Timeline == timeline {
			break
		}
	}
	return false, nil
}

// read returns bytes of the log on disk, or nil if there are none. The file may have the number of a later
// timeline.
func (l *log) read(timeline uint32, start, end wal.LSN) ([]byte, error) {
	timelines := []uint32{timeline}
	newer, err := l.newerHistories(timeline)
	if err != nil {
		return nil, err
	}
	for i := len(newer) - 1; i >= 0; i-- {
		timelines = append(timelines, newer[i][len(newer[i])-1].Timeline)
	}
	for _, timeline := range timelines {
		file, err := os.Open(filepath.Join(l.server.walDir(), l.control.Layout.FileName(timeline, start)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer file.Close()
		content := make([]byte, end-start)
		_, err = file.ReadAt(content, int64(uint64(start)%l.control.Layout.Segment))
		return content, err
	}
	return nil, nil
}

// stranded returns why a running standby cannot continue with the log of the primary, or an empty text if
// it can. An error means that this is unknown.
func (s *Server) stranded(ctx context.Context, host string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	major, err := s.presentMajor()
	if err != nil {
		return "", err
	}
	l, err := s.openLog(ctx, major)
	if err != nil {
		return "", err
	}
	primary, err := s.remote(ctx, host)
	if err != nil {
		return "", err
	}
	defer closing(primary)
	if err := checkPrimary(ctx, primary, host); err != nil {
		return "", err
	}
	system, src, err := s.openSource(ctx, primary, host, l.control.Layout)
	if err != nil || system != l.control.System {
		return "", err
	}
	at, err := s.standbyPlace(ctx, l)
	if err != nil {
		return "", err
	}
	own, err := l.history(at.timeline)
	if err != nil {
		return "", err
	}
	result, err := src.judge(ctx, l, own.Until(at.end))
	if err != nil || result.action == keepCopy {
		return "", err
	}
	return "its copy " + result.reason, nil
}
