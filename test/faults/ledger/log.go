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

// Files of a copy in the data directory. The log has one line of JSON per entry, so that a test can
// remove its tail.
const (
	logFile    = "log"
	joinedFile = "joined"
	lockFile   = "lock"
)

// ledgerLog is the log of a copy. All its entries are on the disk.
type ledgerLog struct {
	file *os.File
	all  []kept // by index; the first one is no entry
	at   map[record.Key]uint64
}

// kept is an entry, and the state of the log up to it.
type kept struct {
	record.Entry
	end  int64         // in the file
	sum  record.Digest // logs with the same digest are equal up to here
	seen appends
}

// appends is a log's state as seen by clients.
type appends struct {
	count  uint64
	digest record.Digest
}

// readLog reads a copy, which may be in use, and changes nothing. It returns the entries and their size
// in bytes. An incomplete last entry was never acknowledged and is skipped.
func readLog(dir string) (entries []record.Entry, size int, err error) {
	path := filepath.Join(dir, logFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err == nil {
		entries, size, err = record.Lines[record.Entry](text)
	}
	var last record.Entry
	for _, e := range entries {
		if e.Index != last.Index+1 || e.Epoch < last.Epoch {
			err = fmt.Errorf("entry %d of epoch %d follows entry %d of epoch %d", e.Index, e.Epoch, last.Index, last.Epoch)
			break
		}
		last = e
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	return entries, size, nil
}

func openLog(dir string) (*ledgerLog, error) {
	entries, size, err := readLog(dir)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(file.Truncate(int64(size)), file.Sync(), syncDir(dir)); err != nil {
		return nil, err
	}
	l := &ledgerLog{file: file, all: make([]kept, 1), at: map[record.Key]uint64{}}
	for _, e := range entries {
		l.remember(e)
	}
	if l.size() != int64(size) {
		return nil, errors.New("the log has entries in an unknown format")
	}
	return l, nil
}

func (l *ledgerLog) remember(e record.Entry) {
	before := l.all[len(l.all)-1]
	k := kept{Entry: e, end: before.end + int64(len(record.Marshal(e))), sum: before.sum.AddEntry(e), seen: before.seen}
	if e.IsAppend() {
		k.seen.count++
		k.seen.digest = k.seen.digest.AddAppend(e.Client, e.Request, e.Value)
		l.at[record.Key{Client: e.Client, Request: e.Request}] = e.Index
	}
	l.all = append(l.all, k)
}

// last returns the last entry, or an empty one.
func (l *ledgerLog) last() record.Entry { return l.all[len(l.all)-1].Entry }

func (l *ledgerLog) size() int64 { return l.all[len(l.all)-1].end }

// find returns the index at which a client's request was appended.
func (l *ledgerLog) find(client, request string) (uint64, bool) {
	index, ok := l.at[record.Key{Client: client, Request: request}]
	return index, ok
}

// add appends entries, and returns when they are on the disk. After an error the content of the disk is
// unknown, and the log must not be used any more.
func (l *ledgerLog) add(entries ...record.Entry) error {
	var text []byte
	for i, e := range entries {
		if e.Index != l.last().Index+uint64(i)+1 || e.Index >= 1<<record.IndexBits || e.Epoch >= 1<<record.EpochBits {
			return fmt.Errorf("entry %d of epoch %d cannot follow entry %d", e.Index, e.Epoch, l.last().Index)
		}
		text = append(text, record.Marshal(e)...)
	}
	if _, err := l.file.WriteAt(text, l.size()); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	for _, e := range entries {
		l.remember(e)
	}
	return nil
}

// cut removes all entries after the first keep ones.
func (l *ledgerLog) cut(keep uint64) error {
	for _, e := range l.all[keep+1:] {
		if index, ok := l.find(e.Client, e.Request); ok && index == e.Index {
			delete(l.at, record.Key{Client: e.Client, Request: e.Request})
		}
	}
	l.all = l.all[:keep+1]
	return errors.Join(l.file.Truncate(l.size()), l.file.Sync())
}

func (l *ledgerLog) close() error { return errors.Join(l.file.Sync(), l.file.Close()) }

// promise is an epoch that a member has joined, and its owner. Primaries that are not aware of each
// other may choose the same number. A member joins only one of them, so at most one of them finds
// enough followers.
type promise struct {
	Epoch uint64 `json:"epoch"`
	Owner string `json:"owner"`
}

// allows reports whether a member with this promise may join the other one.
func (p promise) allows(other promise) bool { return other.Epoch > p.Epoch || other == p }

func readPromise(dir string) (promise, error) {
	var p promise
	text, err := os.ReadFile(filepath.Join(dir, joinedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		err = fmt.Errorf("read the last joined epoch: %w", err)
	}
	return p, err
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
