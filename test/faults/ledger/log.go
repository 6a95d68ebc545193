package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// The files of a copy in the data directory. The log is one line of JSON an
// entry, so that a test can take off its tail.
const (
	logFile    = "log"
	joinedFile = "joined"
	lockFile   = "lock"
)

// ledgerLog is a copy's log. What it holds is on the disk.
type ledgerLog struct {
	file    *os.File
	entries []record.Entry
	ends    []int64         // where each entry ends in the file
	sums    []record.Digest // of the entries up to each one
	appends []appends       // up to each one
	at      map[record.Key]uint64
}

// appends is what clients see of a log.
type appends struct {
	count  uint64
	digest record.Digest
}

// parseLog gives the entries in a text and how many bytes they are. A last
// entry that was not written to its end was never acknowledged.
func parseLog(text []byte) ([]record.Entry, int, error) {
	entries, size, err := record.Lines[record.Entry](text)
	if err != nil {
		return nil, 0, err
	}
	var last record.Entry
	for _, e := range entries {
		if e.Index != last.Index+1 || e.Epoch < last.Epoch {
			return nil, 0, fmt.Errorf("entry %d of epoch %d follows entry %d of epoch %d", e.Index, e.Epoch, last.Index, last.Epoch)
		}
		last = e
	}
	return entries, size, nil
}

// readLog reads a copy that may be in use, and changes nothing.
func readLog(dir string) ([]record.Entry, error) {
	text, err := os.ReadFile(filepath.Join(dir, logFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, _, err := parseLog(text)
	return entries, err
}

func openLog(dir string) (*ledgerLog, error) {
	path := filepath.Join(dir, logFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	entries, size, err := parseLog(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := errors.Join(file.Truncate(int64(size)), file.Sync(), syncDir(dir)); err != nil {
		return nil, err
	}
	l := &ledgerLog{file: file, at: map[record.Key]uint64{}}
	for _, e := range entries {
		l.remember(e, len(record.Marshal(e)))
	}
	if l.size() != int64(size) {
		return nil, fmt.Errorf("reading %s: its entries are not written as this program writes them", path)
	}
	return l, nil
}

func (l *ledgerLog) size() int64 {
	if len(l.ends) == 0 {
		return 0
	}
	return l.ends[len(l.ends)-1]
}

func (l *ledgerLog) remember(e record.Entry, size int) {
	seen := l.seen(e.Index - 1)
	if e.IsAppend() {
		seen.count++
		seen.digest = seen.digest.AddAppend(e.Client, e.Request, e.Value)
		l.at[record.Key{Client: e.Client, Request: e.Request}] = e.Index
	}
	l.ends = append(l.ends, l.size()+int64(size))
	l.sums = append(l.sums, l.sum(e.Index-1).AddEntry(e))
	l.appends = append(l.appends, seen)
	l.entries = append(l.entries, e)
}

// last is the last entry, or an empty one.
func (l *ledgerLog) last() record.Entry {
	if len(l.entries) == 0 {
		return record.Entry{}
	}
	return l.entries[len(l.entries)-1]
}

func (l *ledgerLog) entry(index uint64) record.Entry { return l.entries[index-1] }

// sum stands for the entries up to an index: two logs with the same sum there
// are the same up to there.
func (l *ledgerLog) sum(index uint64) record.Digest {
	if index == 0 {
		return 0
	}
	return l.sums[index-1]
}

func (l *ledgerLog) seen(index uint64) appends {
	if index == 0 {
		return appends{}
	}
	return l.appends[index-1]
}

// find gives the index at which a client's request was appended.
func (l *ledgerLog) find(client, request string) (uint64, bool) {
	index, ok := l.at[record.Key{Client: client, Request: request}]
	return index, ok
}

// add puts entries at the end, and returns when they are on the disk. After an
// error nobody knows what is there, and the log must not be used again.
func (l *ledgerLog) add(entries ...record.Entry) error {
	var text []byte
	sizes := make([]int, len(entries))
	for i, e := range entries {
		if e.Index != l.last().Index+uint64(i)+1 || e.Index >= 1<<record.IndexBits || e.Epoch >= 1<<record.EpochBits {
			return fmt.Errorf("entry %d of epoch %d cannot follow entry %d", e.Index, e.Epoch, l.last().Index)
		}
		line := record.Marshal(e)
		sizes[i] = len(line)
		text = append(text, line...)
	}
	if _, err := l.file.WriteAt(text, l.size()); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	for i, e := range entries {
		l.remember(e, sizes[i])
	}
	return nil
}

// cut takes off all entries but the first ones.
func (l *ledgerLog) cut(keep uint64) error {
	for _, e := range l.entries[keep:] {
		if index, ok := l.find(e.Client, e.Request); ok && index == e.Index {
			delete(l.at, record.Key{Client: e.Client, Request: e.Request})
		}
	}
	l.entries, l.ends = l.entries[:keep], l.ends[:keep]
	l.sums, l.appends = l.sums[:keep], l.appends[:keep]
	return errors.Join(l.file.Truncate(l.size()), l.file.Sync())
}

func (l *ledgerLog) close() error { return errors.Join(l.file.Sync(), l.file.Close()) }

// promise is an epoch that a member has joined, and whose it is: primaries that
// know nothing of each other may take the same number, but a member joins only
// one of them, so that not both find enough followers.
type promise struct {
	Epoch uint64 `json:"epoch"`
	Owner string `json:"owner"`
}

// allows tells whether a member that made this promise may join the other.
func (p promise) allows(other promise) bool { return other.Epoch > p.Epoch || other == p }

func readPromise(dir string) (promise, error) {
	var p promise
	text, err := os.ReadFile(filepath.Join(dir, joinedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(text, &p)
}

// keep returns when the promise is on the disk.
func (p promise) keep(dir string) error {
	path := filepath.Join(dir, joinedFile)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(record.Marshal(p))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".new", path), syncDir(dir))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
