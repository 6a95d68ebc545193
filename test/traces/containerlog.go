package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The lines of an agent. Packages agent/lease and agent/driver write them. A line of the program that is not complete can
// precede one. Commands of an application have its type before their name.
var (
	agentLine   = regexp.MustCompile(`(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) agent (?:[a-z]+ )?[a-z]+: (.*)$`)
	waitsLine   = regexp.MustCompile(`^waiting for Lease (\S+) as (\S+)$`)
	startsLine  = regexp.MustCompile(`^holds Lease (\S+) \(epoch (\d+)\) after \S+: starts the program$`)
	armedLine   = regexp.MustCompile(`^armed with epoch (\d+) of Lease (\S+)$`)
	handedLine  = regexp.MustCompile(`^handed over Lease \S+ to \S+ \(epoch (\d+)\)$`)
	disarmsLine = regexp.MustCompile(`^disarmed: Lease \S+ `)
	fencedLine  = regexp.MustCompile(`: ends the container$`)
	grantedLine = regexp.MustCompile(`^received start grant \S+: runs the program without the Lease`)
)

const agentTime = "2006-01-02 15:04:05.000"

// readContainer adds the log of a container to the trace. Its lines begin with a time, as kubelets and kubectl logs
// --timestamps write them. A container without an agent is left out.
func (t *trace) readContainer(name string, log io.Reader) error {
	var c *container
	lines := bufio.NewReader(log)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		at := place{name, n}
		logged, text, ok := cutTime(strings.TrimSuffix(line, "\n"))
		if !ok {
			return fmt.Errorf("%s does not begin with a time", at)
		}
		found := agentLine.FindStringSubmatch(text)
		if found != nil {
			if logged, err = time.Parse(agentTime, found[1]); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			text = found[2]
		}
		switch waits := waitsLine.FindStringSubmatch(text); {
		case waits != nil && found != nil && c == nil:
			c = &container{place: at, lease: waits[1], pod: waits[2], began: logged}
		case c == nil: // the agent has not begun
		case found == nil:
			c.last = mark{place: at, kind: output, at: logged}
		default:
			if m, ok := markOf(text); ok {
				m.place, m.at = at, logged
				c.marks = append(c.marks, m)
			}
		}
	}
	if c != nil {
		t.containers = append(t.containers, c)
	}
	return nil
}

// cutTime returns the time of a line, and its text.
func cutTime(line string) (at time.Time, text string, ok bool) {
	first, text, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, first)
	if err != nil {
		return time.Time{}, "", false
	}
	for _, stream := range []string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		if rest, cut := strings.CutPrefix(text, stream); cut {
			return at, rest, true
		}
	}
	return at, text, true
}

// markOf returns the mark of a line of an agent. It returns false for a line that the check does not use.
func markOf(text string) (mark, bool) {
	for kind, line := range map[markKind]*regexp.Regexp{handed: handedLine, disarmed: disarmsLine, fenced: fencedLine, released: grantedLine} {
		if line.MatchString(text) {
			return mark{kind: kind}, true
		}
	}
	epoch := ""
	if found := startsLine.FindStringSubmatch(text); found != nil {
		epoch = found[2]
	}
	if found := armedLine.FindStringSubmatch(text); found != nil {
		epoch = found[1]
	}
	number, err := strconv.ParseInt(epoch, 10, 64)
	return mark{kind: started, epoch: number}, err == nil
}
