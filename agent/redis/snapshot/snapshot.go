// Package snapshot reads the start of a snapshot of Redis or Valkey: its position in the stream of
// writes, and its functions. They precede the data, so the time does not depend on the size.
package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Header is the start of a snapshot.
type Header struct {
	// Offset is the position in the stream of writes. It is 0 if the server had no secondary.
	Offset int64
	// Functions are the sources of the libraries.
	Functions []string
}

// Opcodes of the format, see rdb.h of Redis.
const (
	opFunction  = 0xF5
	opModuleAux = 0xF7
	opAux       = 0xFA
)

// ErrFormat is the error for a file that is not a snapshot.
var ErrFormat = errors.New("not a snapshot of Redis or Valkey")

// Read reads the start of a file.
func Read(path string) (Header, error) {
	file, err := os.Open(path)
	if err != nil {
		return Header{}, err
	}
	defer file.Close()
	h, err := read(bufio.NewReader(file))
	if err != nil {
		return Header{}, fmt.Errorf("read %s: %w", path, err)
	}
	return h, nil
}

func read(from *bufio.Reader) (Header, error) {
	magic := make([]byte, 9)
	if _, err := io.ReadFull(from, magic); err != nil {
		return Header{}, ErrFormat
	}
	if name := string(magic); !strings.HasPrefix(name, "REDIS") && !strings.HasPrefix(name, "VALKEY") {
		return Header{}, ErrFormat
	}
	r := reader{from}
	var h Header
	for {
		op, err := from.ReadByte()
		if err != nil {
			return Header{}, err
		}
		switch op {
		case opAux:
			err = r.aux(&h)
		case opFunction:
			var code string
			code, err = r.text()
			h.Functions = append(h.Functions, code)
		case opModuleAux:
			err = r.skipModule()
		default:
			return h, nil // the data starts
		}
		if err != nil {
			return Header{}, err
		}
	}
}

func (r reader) aux(h *Header) error {
	key, err := r.text()
	if err != nil {
		return err
	}
	value, err := r.text()
	if err != nil || key != "repl-offset" {
		return err
	}
	h.Offset, err = strconv.ParseInt(value, 10, 64)
	return err
}

// reader reads encoded values.
type reader struct{ *bufio.Reader }

// Encodings of strings that are not stored as they are.
const (
	encodedInt8 = iota
	encodedInt16
	encodedInt32
	encodedLZF
)

// maxText is higher than any text before the data. It limits the memory for a damaged file.
const maxText = 64 << 20

// length reads a length, or an encoding of the string that follows.
func (r reader) length() (n uint64, encoded bool, err error) {
	first, err := r.ReadByte()
	if err != nil {
		return 0, false, err
	}
	low := uint64(first & 0x3F)
	switch first >> 6 {
	case 0:
		return low, false, nil
	case 1:
		next, err := r.ReadByte()
		return low<<8 | uint64(next), false, err
	case 3:
		return low, true, nil
	}
	size := 4
	if low == 1 {
		size = 8
	}
	wide := make([]byte, 8)
	_, err = io.ReadFull(r, wide[8-size:])
	return binary.BigEndian.Uint64(wide), false, err
}

func (r reader) text() (string, error) {
	n, encoded, err := r.length()
	if err != nil {
		return "", err
	}
	if !encoded {
		raw, err := r.bytes(n)
		return string(raw), err
	}
	switch n {
	case encodedInt8, encodedInt16, encodedInt32:
		raw, err := r.bytes(1 << n)
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(littleEndian(raw), 10), nil
	case encodedLZF:
		return r.compressed()
	}
	return "", ErrFormat
}

func littleEndian(raw []byte) int64 {
	switch len(raw) {
	case 1:
		return int64(int8(raw[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(raw)))
	}
	return int64(int32(binary.LittleEndian.Uint32(raw)))
}

func (r reader) bytes(n uint64) ([]byte, error) {
	if n > maxText {
		return nil, ErrFormat
	}
	raw := make([]byte, n)
	_, err := io.ReadFull(r, raw)
	return raw, err
}

func (r reader) compressed() (string, error) {
	short, _, err := r.length()
	if err != nil {
		return "", err
	}
	long, _, err := r.length()
	if err != nil {
		return "", err
	}
	raw, err := r.bytes(short)
	if err != nil || long > maxText {
		return "", errors.Join(ErrFormat, err)
	}
	return decompress(raw, int(long))
}

// decompress decodes LZF: a byte below 32 precedes that many literal bytes and one, and others refer to
// earlier output by length and distance.
func decompress(raw []byte, size int) (string, error) {
	out := make([]byte, 0, size)
	for len(raw) > 0 {
		control := int(raw[0])
		raw = raw[1:]
		if control < 32 {
			if control >= len(raw) {
				return "", ErrFormat
			}
			out, raw = append(out, raw[:control+1]...), raw[control+1:]
			continue
		}
		count := control >> 5
		need := 1
		if count == 7 {
			need = 2
		}
		if len(raw) < need {
			return "", ErrFormat
		}
		if count == 7 {
			count += int(raw[0])
		}
		from := len(out) - ((control&0x1F)<<8 | int(raw[need-1])) - 1
		raw = raw[need:]
		if from < 0 || len(out)+count+2 > size {
			return "", ErrFormat
		}
		for i := range count + 2 {
			out = append(out, out[from+i])
		}
	}
	if len(out) != size {
		return "", ErrFormat
	}
	return string(out), nil
}

// Types of the values of a module.
const (
	moduleEnd = iota
	moduleSigned
	moduleUnsigned
	moduleFloat
	moduleDouble
	moduleText
)

// skipModule skips the data of a module that precedes the other data: its ID, and typed values.
func (r reader) skipModule() error {
	if _, _, err := r.length(); err != nil {
		return err
	}
	for {
		kind, _, err := r.length()
		if err != nil {
			return err
		}
		switch kind {
		case moduleEnd:
			return nil
		case moduleSigned, moduleUnsigned:
			_, _, err = r.length()
		case moduleFloat:
			_, err = r.bytes(4)
		case moduleDouble:
			_, err = r.bytes(8)
		case moduleText:
			_, err = r.text()
		default:
			return ErrFormat
		}
		if err != nil {
			return err
		}
	}
}
