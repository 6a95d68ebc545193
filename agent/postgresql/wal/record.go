package wal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Record is a record of the log.
type Record struct {
	Start  LSN
	Length uint32 // in bytes, without the headers of pages
	Switch bool   // the rest of the segment is unused
}

// maxLine is the length of a line of pg_waldump that is parsed. The rest describes the record.
const maxLine = 4096

var recordLine = regexp.MustCompile(`^rmgr: (\S+) +len \(rec/tot\): *\d+/ *(\d+), tx: *\d+, lsn: ([0-9A-F]+/[0-9A-F]+), prev [0-9A-F]+/[0-9A-F]+, (?:bkp: \S+, )?desc: (\S*)`)

// LastRecord reads the output of pg_waldump to its end, and returns its last record. pg_waldump prints
// only whole records with a correct checksum. ok is false if there is none.
func LastRecord(output io.Reader) (last Record, ok bool, err error) {
	lines := bufio.NewReaderSize(output, maxLine)
	var text string
	for {
		line, err := lines.ReadSlice('\n')
		if strings.HasPrefix(string(line[:min(len(line), 6)]), "rmgr: ") {
			text = string(line)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Record{}, false, err
		}
	}
	if text == "" {
		return Record{}, false, nil
	}
	last, err = parseRecord(text)
	return last, err == nil, err
}

func parseRecord(line string) (Record, error) {
	parts := recordLine.FindStringSubmatch(line)
	if parts == nil {
		return Record{}, fmt.Errorf("pg_waldump printed an unexpected line: %q", line)
	}
	length, err := strconv.ParseUint(parts[2], 10, 32)
	if err != nil {
		return Record{}, err
	}
	start, err := ParseLSN(parts[3])
	if err != nil {
		return Record{}, err
	}
	isSwitch := parts[1] == "XLOG" && parts[4] == "SWITCH"
	return Record{Start: start, Length: uint32(length), Switch: isSwitch}, nil
}
