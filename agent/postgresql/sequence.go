package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/wal"
)

// startingUp is the SQLSTATE of a server that does not accept connections yet.
const startingUp = "57P03"

// Sequence returns the timeline and the end of the last whole record of this copy, see wal.Number. The
// position up to which a server has flushed its log may be inside a record, which does not exist after a
// crash.
func (s *Server) Sequence(ctx context.Context) (uint64, error) {
	running, err := servers.Running()
	if err != nil {
		return 0, err
	}
	if !running {
		return s.stoppedSequence(ctx)
	}
	recovering, err := s.inRecovery(ctx)
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == startingUp {
		return s.stoppedSequence(ctx) // the files are those of a stopped server
	}
	if err != nil {
		return 0, err
	}
	major, err := s.presentMajor()
	if err != nil {
		return 0, err
	}
	l, err := s.openLog(ctx, major)
	if err != nil {
		return 0, err
	}
	var at place
	if recovering {
		at, err = s.standbyPlace(ctx, l)
	} else {
		at, err = s.primaryPlace(ctx, l)
	}
	if err != nil {
		return 0, err
	}
	return wal.Number(at.timeline, at.end)
}

func (s *Server) presentMajor() (string, error) {
	state, major, err := s.copyState()
	if err == nil && state == copyMissing {
		err = fmt.Errorf("%s has no data, but a server runs", s.config.DataDir)
	}
	return major, err
}

// stoppedSequence returns 0 for a copy that cannot be started as primary.
func (s *Server) stoppedSequence(ctx context.Context) (uint64, error) {
	state, major, err := s.copyState()
	if err != nil {
		return 0, err
	}
	if state != copyPresent {
		return 0, nil
	}
	l, err := s.openLog(ctx, major)
	if err != nil {
		return 0, err
	}
	at, err := l.end(ctx)
	if err != nil {
		return 0, err
	}
	if at.end < l.control.MinRecovery {
		s.log.Printf("this copy is not consistent before %s, and ends at %s", l.control.MinRecovery, at.end)
		return 0, nil
	}
	return wal.Number(at.timeline, at.end)
}

// primaryPlace returns the end of the last whole record that is flushed.
func (s *Server) primaryPlace(ctx context.Context, l *log) (place, error) {
	var file, flushed string
	err := s.askLocal(ctx, "select pg_walfile_name(p), p::text from pg_current_wal_flush_lsn() as p", &file, &flushed)
	if err != nil {
		return place{}, err
	}
	limit, err := wal.ParseLSN(flushed)
	if err != nil {
		return place{}, err
	}
	timeline, _, ok := l.control.Layout.ParseFileName(file)
	if !ok {
		return place{}, fmt.Errorf("the server reports an unexpected file of the log: %q", file)
	}
	// The record starts in this segment, or in the one before.
	segment := wal.LSN(l.control.Layout.Segment)
	for from := l.control.Layout.SegmentStart(limit - 1); from > 0 && limit-from <= 2*segment; from -= segment {
		last, found, err := l.lastWhole(ctx, s.walDir(), timeline, from, limit)
		if err != nil || found {
			return place{timeline, l.control.Layout.End(last)}, err
		}
	}
	return l.end(ctx)
}

// standbyPlace includes records that were received but not replayed, because a promotion replays them.
func (s *Server) standbyPlace(ctx context.Context, l *log) (place, error) {
	var replayed string
	if err := s.askLocal(ctx, "select coalesce(pg_last_wal_replay_lsn(), '0/0')::text", &replayed); err != nil {
		return place{}, err
	}
	from, err := wal.ParseLSN(replayed)
	if err != nil {
		return place{}, err
	}
	timeline, err := s.replayTimeline(ctx)
	if err != nil || from == 0 {
		return l.end(ctx) // slower, because it reads everything since the last checkpoint
	}
	return l.endFrom(ctx, place{timeline, from}, true)
}

// replayTimeline returns the timeline that a standby replays. Only a replication session reports it.
func (s *Server) replayTimeline(ctx context.Context) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	rows, err := s.replicationCommand(ctx, s.localInfo(), "IDENTIFY_SYSTEM")
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return 0, errors.New("IDENTIFY_SYSTEM returned no row")
	}
	timeline, err := strconv.ParseUint(string(rows[0][1]), 10, 32)
	return uint32(timeline), err
}

// replicationCommand runs a command in a new replication session.
func (s *Server) replicationCommand(ctx context.Context, info conninfo, command string) ([][][]byte, error) {
	c, err := pgconn.Connect(ctx, append(info, [2]string{"replication", "database"}).String())
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx) // the server ends the session in any case
	}()
	results, err := c.Exec(ctx, command).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return results[0].Rows, results[0].Err
}

// openLog reads the control file. A running server writes it at times, so an unreadable one is read again.
func (s *Server) openLog(ctx context.Context, major string) (*log, error) {
	programs, err := s.installed(ctx, major)
	if err != nil {
		return nil, err
	}
	const attempts = 5
	for i := range attempts {
		var control wal.Control
		if control, err = s.control(ctx, programs); err == nil {
			return &log{server: s, programs: programs, control: control}, nil
		}
		if i < attempts-1 && !driver.Pause(ctx) {
			break
		}
	}
	return nil, driver.Errorf(driver.Failed, "read the control file: %w", err)
}

func (s *Server) control(ctx context.Context, programs installation) (wal.Control, error) {
	out, err := s.output(ctx, programs.path("pg_controldata"), s.config.DataDir)
	if err != nil {
		return wal.Control{}, err
	}
	return wal.ParseControl(out)
}
