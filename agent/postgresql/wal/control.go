package wal

import (
	"fmt"
	"strconv"
	"strings"
)

// Control is the content of the control file of a data folder.
type Control struct {
	System      string // identifies the history to which a copy belongs
	State       string
	Timeline    uint32 // of the last checkpoint
	Redo        LSN    // where recovery starts
	MinRecovery LSN    // before it, the copy is not consistent. 0 if it is
	Layout      Layout

	// Settings that a standby must not decrease.
	Settings map[string]int
}

// CleanlyStopped reports whether the server was stopped without a need for recovery.
func (c Control) CleanlyStopped() bool {
	return c.State == "shut down" || c.State == "shut down in recovery"
}

// standbySettings has the settings that a standby must not decrease, by their label in the output of
// pg_controldata.
var standbySettings = map[string]string{
	"max_connections setting":      "max_connections",
	"max_worker_processes setting": "max_worker_processes",
	"max_wal_senders setting":      "max_wal_senders",
	"max_prepared_xacts setting":   "max_prepared_transactions",
	"max_locks_per_xact setting":   "max_locks_per_transaction",
}

// ParseControl parses the output of pg_controldata in the C locale. It rejects a control file with an
// incorrect checksum, because its values are random.
func ParseControl(output string) (Control, error) {
	lines := map[string]string{}
	for line := range strings.SplitSeq(output, "\n") {
		if strings.HasPrefix(line, "WARNING") {
			return Control{}, fmt.Errorf("the control file is damaged: %s", line)
		}
		if label, value, ok := strings.Cut(line, ":"); ok {
			lines[label] = strings.TrimSpace(value)
		}
	}
	p := parser{lines: lines}
	c := Control{
		System:      p.text("Database system identifier"),
		State:       p.text("Database cluster state"),
		Timeline:    uint32(p.number("Latest checkpoint's TimeLineID")),
		Redo:        p.position("Latest checkpoint's REDO location"),
		MinRecovery: p.position("Minimum recovery ending location"),
		Layout:      Layout{Page: p.number("WAL block size"), Segment: p.number("Bytes per WAL segment")},
		Settings:    map[string]int{},
	}
	for label, name := range standbySettings {
		c.Settings[name] = int(p.number(label))
	}
	if p.err == nil && (c.Layout.Page == 0 || c.Layout.Segment == 0 || c.Timeline == 0) {
		p.err = fmt.Errorf("the control file is damaged: a size or the timeline is 0")
	}
	return c, p.err
}

// parser keeps the first error.
type parser struct {
	lines map[string]string
	err   error
}

func (p *parser) text(label string) string {
	value, ok := p.lines[label]
	if (!ok || value == "") && p.err == nil {
		p.err = fmt.Errorf("pg_controldata does not print %q", label)
	}
	return value
}

func (p *parser) number(label string) uint64 {
	value, err := strconv.ParseUint(p.text(label), 10, 32)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("pg_controldata prints for %q: %w", label, err)
	}
	return value
}

func (p *parser) position(label string) LSN {
	value, err := ParseLSN(p.text(label))
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("pg_controldata prints for %q: %w", label, err)
	}
	return value
}
