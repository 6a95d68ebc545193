// Package record has the formats of ledgers and their clients: entries of a log, lines of a journal,
// and operations of a client.
package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
)

// Bits of a sequence number, which limit the size of a ledger.
const (
	IndexBits = 40
	EpochBits = 64 - IndexBits
)

// Entry is one entry of a log. Indexes start at 1 without gaps. The epoch never decreases from one
// entry to the next.
type Entry struct {
	Epoch   uint64 `json:"epoch"`
	Index   uint64 `json:"index"`
	Client  string `json:"client,omitempty"`
	Request string `json:"request,omitempty"`
	Value   string `json:"value,omitempty"`
}

// IsAppend reports whether a client appended the entry. Every epoch starts with an entry without a
// client.
func (e Entry) IsAppend() bool { return e.Client != "" }

// Sequence orders copies by the newness of their last entry: first by the epoch, then by the index. A
// copy without entries has 0.
func (e Entry) Sequence() uint64 { return e.Epoch<<IndexBits | e.Index }

// Digest is a hash of all added items in their order.
type Digest uint64

// AddEntry returns the digest of a log with one more entry.
func (d Digest) AddEntry(e Entry) Digest {
	return d.add(strconv.FormatUint(e.Epoch, 10), strconv.FormatUint(e.Index, 10), e.Client, e.Request, e.Value)
}

// AddAppend returns the digest of the clients' appends with one more. It does not depend on epochs.
func (d Digest) AddAppend(client, request, value string) Digest {
	return d.add(client, request, value)
}

func (d Digest) add(words ...string) Digest {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d", d)
	for _, word := range words {
		fmt.Fprintf(hash, "\x00%d %s", len(word), word)
	}
	return Digest(hash.Sum64())
}

// Marshal returns a value as one line of JSON.
func Marshal(value any) []byte {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err) // these are plain structs
	}
	return append(line, '\n')
}

// Lines decodes the complete lines of a text and returns their size in bytes. An incomplete last line
// is skipped.
func Lines[T any](text []byte) (lines []T, size int, err error) {
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for text := range bytes.Lines(whole) {
		var line T
		if err := json.Unmarshal(text, &line); err != nil {
			return lines, size, fmt.Errorf("line %d: %w: %s", len(lines)+1, err, text)
		}
		lines = append(lines, line)
		size += len(text)
	}
	return lines, size, nil
}

// ReadLines reads a file of lines.
func ReadLines[T any](path string) ([]T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines, _, err := Lines[T](text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return lines, nil
}
