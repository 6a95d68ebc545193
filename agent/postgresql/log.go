package postgresql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"

	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/wal"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// log is the write-ahead log on disk. The server may be running.
type log struct {
	server   *Server
	programs installation
	control  wal.Control
}

// place is the end of a record on a timeline.
type place struct {
	timeline uint32
	end      wal.LSN
}

func (i installation) path(name string) string { return filepath.Join(i.folder, name) }

// end returns the end of the copy: that of the last whole record which recovery reads.
func (l *log) end(ctx context.Context) (place, error) {
	return l.endFrom(ctx, place{l.control.Timeline, l.control.Redo}, false)
}

// endFrom returns the end of the copy, given a position where a record ends or starts. replayed means
// that the position is part of the copy even if no record follows.
//
// A copy may end on a newer timeline than that of its last checkpoint. It does so only if it has a record
// of that timeline: a standby receives history files before it receives records, and then its copy is not
// newer than one of the old timeline.
func (l *log) endFrom(ctx context.Context, from place, replayed bool) (place, error) {
	histories, err := l.newerHistories(from.timeline)
	if err != nil {
		return place{}, err
	}
	own, err := l.history(from.timeline)
	if err != nil {
		return place{}, err
	}
	at, found := from, replayed
	for _, history := range append(histories, own) {
		next, ok, err := l.endOf(ctx, history, from)
		if err != nil {
			return place{}, err
		}
		if ok && (!found || at.before(next)) {
			at, found = next, true
		}
	}
	if !found {
		return place{}, fmt.Errorf("the log of timeline %d has no record at %s, where recovery starts", from.timeline, from.end)
	}
	return at, l.sync(at)
}

func (p place) before(other place) bool {
	if p.timeline != other.timeline {
		return p.timeline < other.timeline
	}
	return p.end < other.end
}

// endOf returns the end of the last whole record of a history. ok is false if there is none.
//
// pg_waldump reads the files of one timeline, but records continue in files of the next one. So it reads a
// folder with links to the files that recovery uses.
func (l *log) endOf(ctx context.Context, history wal.History, from place) (at place, ok bool, err error) {
	files, err := l.segments(history)
	if err != nil {
		return place{}, false, err
	}
	folder, err := os.MkdirTemp(string(l.server.Private), "log-*")
	if err != nil {
		return place{}, false, err
	}
	defer os.RemoveAll(folder)
	last := history[len(history)-1].Timeline
	for start, timeline := range files {
		if start < l.control.Layout.SegmentStart(from.end) {
			continue
		}
		file := filepath.Join(l.server.walDir(), l.control.Layout.FileName(timeline, start))
		if err := os.Symlink(file, filepath.Join(folder, l.control.Layout.FileName(last, start))); err != nil {
			return place{}, false, err
		}
	}
	record, ok, err := l.lastWhole(ctx, folder, last, from.end, 0)
	if err != nil || !ok {
		return place{}, false, err
	}
	timeline := files[l.control.Layout.SegmentStart(record.Start)]
	if span, _ := history.Find(timeline); record.Start < span.Begin {
		timeline = history.At(record.Start) // the first segment of a timeline repeats records of the earlier one
	}
	return place{timeline, l.control.Layout.End(record)}, true, nil
}

// segments returns the timeline of the file that recovery reads for each segment, by its start: that of
// the newest timeline which has begun.
func (l *log) segments(history wal.History) (map[wal.LSN]uint32, error) {
	entries, err := os.ReadDir(l.server.walDir())
	if err != nil {
		return nil, err
	}
	newest := map[wal.LSN]uint32{}
	for _, entry := range entries {
		timeline, start, isSegment := l.control.Layout.ParseFileName(entry.Name())
		span, found := history.Find(timeline)
		if !isSegment || !found || start < l.control.Layout.SegmentStart(span.Begin) {
			continue
		}
		newest[start] = max(newest[start], timeline)
	}
	return newest, nil
}

// newerHistories returns the histories on disk that contain a timeline and continue it, newest first.
func (l *log) newerHistories(timeline uint32) ([]wal.History, error) {
	entries, err := os.ReadDir(l.server.walDir())
	if err != nil {
		return nil, err
	}
	var newer []uint32
	for _, entry := range entries {
		if id, ok := wal.ParseHistoryFile(entry.Name()); ok && id > timeline {
			newer = append(newer, id)
		}
	}
	slices.Sort(newer)
	slices.Reverse(newer)
	var histories []wal.History
	for _, id := range newer {
		history, err := l.history(id)
		if err != nil {
			return nil, err
		}
		if _, continues := history.Find(timeline); continues {
			histories = append(histories, history)
		}
	}
	return histories, nil
}

// history reads the history of a timeline from disk. The first timeline has no file.
func (l *log) history(timeline uint32) (wal.History, error) {
	if timeline == 1 {
		return wal.ParseHistory(1, "")
	}
	text, err := os.ReadFile(filepath.Join(l.server.walDir(), wal.HistoryFile(timeline)))
	if err != nil {
		return nil, err
	}
	return wal.ParseHistory(timeline, string(text))
}

// endOfLog matches messages with which pg_waldump ends at the first record that is not whole. All other
// messages are errors, such as those of the disk: the end is unknown.
var endOfLog = regexp.MustCompile(`error in WAL record at|could not find a valid record after|could not find file|could not find any WAL file`)

// lastWhole returns the last whole record in the files of a timeline, at or after a position. limit is a
// position after which records are ignored, or 0. found is false if there is no record.
func (l *log) lastWhole(ctx context.Context, folder string, timeline uint32, from, limit wal.LSN) (last wal.Record, found bool, err error) {
	if _, err := os.Stat(filepath.Join(folder, l.control.Layout.FileName(timeline, from))); errors.Is(err, os.ErrNotExist) {
		return wal.Record{}, false, nil
	}
	args := []string{"-p", folder, "-t", strconv.FormatUint(uint64(timeline), 10), "-s", from.String()}
	if limit > from {
		args = append(args, "-e", limit.String())
	}
	return lastRecord(l.server.tool(ctx, l.programs.path("pg_waldump"), args...))
}

func lastRecord(cmd *exec.Cmd) (last wal.Record, found bool, err error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return last, false, err
	}
	runtime.LockOSThread() // as in runTool
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return last, false, err
	}
	last, found, err = wal.LastRecord(stdout)
	waitErr := cmd.Wait()
	var exit *exec.ExitError
	ended := errors.As(waitErr, &exit) && exit.Exited() && endOfLog.MatchString(stderr.String())
	if err == nil && waitErr != nil && !ended {
		err = fmt.Errorf("pg_waldump: %w: %s", waitErr, processes.Tail(stderr.String()))
	}
	return last, found && err == nil, err
}

// sync writes the end of the log to disk, so that the copy does not become older when the machine
// crashes. A standby may have received records that it has not flushed.
func (l *log) sync(at place) error {
	entries, err := os.ReadDir(l.server.walDir())
	if err != nil {
		return err
	}
	oldest := l.control.Layout.SegmentNumber(l.control.Redo)
	for _, entry := range entries {
		_, start, isSegment := l.control.Layout.ParseFileName(entry.Name())
		number := l.control.Layout.SegmentNumber(start)
		if !isSegment || number < oldest || start > at.end {
			continue
		}
		if err := syncFile(filepath.Join(l.server.walDir(), entry.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return files.SyncFolder(l.server.walDir())
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
