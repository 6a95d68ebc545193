package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// knob defines how a command fails. It is read for each command from the first of
//
//	$LEDGER_KNOBS/<pod>/<command>, $LEDGER_KNOBS/<command>, $LEDGER_KNOB_<COMMAND>
//
// and has one or more words, each on a line (or separated by ;):
//
//	once         is for one use: the file is removed
//	lag 3s       waits first
//	hang         never ends, and does nothing
//	exit 1       ends with 1, and does nothing
//	print TEXT   prints TEXT, and does nothing
//	garbage      prints bytes that are no number and no text, and does nothing
//	flood        prints a gigabyte, and does nothing
//	late 5s      ends immediately, and takes effect 5 s later
//	kill         is killed when it has sent its order, which is still carried out
//	crash        the server is killed during the command
//	then hang    runs the command, and never ends
//	then exit 1  runs the command, and ends with 1
//
// exit can be combined with the words that print, and "then" with late. Two names are not hooks:
// replicate (hang, lag) is the follower's pulling, and term (hang, lag) is the reaction of process 1 to
// SIGTERM.
type knob struct {
	path           string
	has            map[string]bool // the words
	lag, late      time.Duration
	exit, thenExit int
	print          string
}

// knob returns the knob for a command. It is empty if none is set.
func (s settings) knob(command string) (knob, error) {
	if s.knobs != "" {
		for _, path := range []string{filepath.Join(s.knobs, s.name, command), filepath.Join(s.knobs, command)} {
			text, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return knob{}, err
			}
			k, err := parseKnob(string(text))
			k.path = path
			return k, err
		}
	}
	return parseKnob(os.Getenv("LEDGER_KNOB_" + strings.ToUpper(command)))
}

func parseKnob(text string) (knob, error) {
	k := knob{has: map[string]bool{}}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		if err := k.turn(strings.TrimSpace(line)); err != nil {
			return knob{}, fmt.Errorf("knob %q: %w", line, err)
		}
	}
	return k, nil
}

func (k *knob) turn(line string) (err error) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "then" {
		word, rest, _ = strings.Cut(rest, " ")
		word = "then " + word
	}
	switch word {
	case "", "once", "hang", "garbage", "flood", "kill", "crash", "then hang":
	case "lag":
		k.lag, err = time.ParseDuration(rest)
	case "late":
		k.late, err = time.ParseDuration(rest)
	case "exit":
		k.exit, err = strconv.Atoi(rest)
	case "then exit":
		k.thenExit, err = strconv.Atoi(rest)
	case "print":
		k.print = rest
	default:
		return errors.New("unknown word")
	}
	k.has[word] = true
	return err
}

// pretends reports whether a word replaces the command.
func (k knob) pretends() bool {
	return k.has["exit"] || k.has["print"] || k.has["garbage"] || k.has["flood"]
}

// use removes the file of a knob that is for one use. If two processes read it in parallel, only one
// can use it.
func (k knob) use() (mine bool) {
	return !k.has["once"] || k.path == "" || os.Remove(k.path) == nil
}
