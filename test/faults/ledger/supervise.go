package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// Exit codes of the hooks, as defined by OCF.
const (
	exitFailed        = 1
	exitUsage         = 2
	exitStopped       = 7
	exitPrimary       = 8
	exitFailedPrimary = 9
)

const (
	answerWithin = 10 * time.Second // a server that does not report its role hangs
	stopWithin   = 10 * time.Second // a server that does not stop is killed
)

// supervisor is process 1. It does nothing until a command.
type supervisor struct {
	settings
	journal *journal

	commands sync.Mutex // serializes commands, except for queries

	mu     sync.Mutex // guards the fields below
	server *server    // nil if none runs
	role   string     // of the server in its last response
	failed bool       // it was primary and ended without a command
}

func supervise(s settings) {
	if s.members < 1 {
		need(errors.New("LEDGER_MEMBERS is required: the number of configured members"))
	}
	need(os.MkdirAll(s.dir, 0o755))
	v := &supervisor{settings: s, journal: must(openJournal(s, newRun()))}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	listener := must(listenUnix(s.socket))
	v.journal.say(record.Line{What: record.Start})
	fmt.Println("ledger: idle until a command arrives")
	go func() { need(http.Serve(listener, handler(v.take))) }()
	for sig := range signals {
		v.reap()
		if sig != syscall.SIGCHLD {
			go v.terminate()
		}
	}
}

// terminate stops the server and exits on SIGTERM, unless a knob prevents it.
func (v *supervisor) terminate() {
	k, err := v.knob("term")
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
	}
	time.Sleep(k.lag)
	if k.has["hang"] {
		return
	}
	v.stop(order{Command: "stop"})
	v.journal.say(record.Line{What: record.End})
	os.Exit(0)
}

// take runs the order of a hook. It is completed even if the hook has ended.
func (v *supervisor) take(_ context.Context, o order) (outcome, error) {
	switch {
	case o.Command == "status":
		v.journal.say(record.Line{What: record.Asked, Text: o.Command})
		return v.status(), nil
	case o.Command == "sequence":
		v.journal.say(record.Line{What: record.Asked, Text: o.Command})
		return v.sequence(), nil
	case o.Command == "kill":
		if s, _, _ := v.now(); s != nil {
			v.kill(s)
		}
		return outcome{}, nil
	case o.Late > 0:
		time.AfterFunc(o.Late, func() { v.carryOut(o) })
		return outcome{}, nil
	}
	return v.carryOut(o), nil
}

// carryOut runs a command, and records its arrival and its end.
func (v *supervisor) carryOut(o order) (out outcome) {
	v.journal.say(record.Line{What: record.Command, Text: o.Command})
	v.commands.Lock()
	defer v.commands.Unlock()
	switch o.Command {
	case "seed", "primary", "secondary":
		out = v.start(o)
	case "promote", "demote":
		if s, _, _ := v.now(); s == nil {
			out = outcome{Code: exitStopped, Error: "not running"}
		} else {
			out = v.order(s, o)
		}
	case "leave":
		out = v.leave(o)
	case "stop":
		out = v.stop(o)
	default:
		out = outcome{Code: exitUsage, Error: "no such command: " + o.Command}
	}
	v.journal.say(record.Line{What: record.Done, Text: fmt.Sprintf("%s: %d %s", o.Command, out.Code, out.Error)})
	return out
}

// now returns the server, its role, and whether it failed as primary.
func (v *supervisor) now() (*server, string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.server, v.role, v.failed
}

// start starts a server if there is none. A new server is stopped if the order fails.
func (v *supervisor) start(o order) outcome {
	s, _, _ := v.now()
	fresh := s == nil
	if fresh {
		var err error
		if s, err = v.launch(); err != nil {
			return outcome{Code: exitFailed, Error: err.Error()}
		}
	}
	out := v.order(s, o)
	if fresh && out.Code != 0 {
		v.stop(order{Command: "stop"})
	}
	return out
}

// order sends an order to the server and returns the outcome.
func (v *supervisor) order(s *server, o order) outcome {
	out, err := send(v.serverSocket(), 0, o)
	if err != nil {
		if s.endsNow() {
			err = errors.New("the server has exited")
		}
		return outcome{Code: exitFailed, Error: fmt.Sprintf("%s: %v", o.Command, err)}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.role = out.View.Role
	return out
}

// stop returns when the server has ended, if necessary by force.
func (v *supervisor) stop(o order) outcome {
	s, _, _ := v.now()
	if s != nil {
		s.told.Store(true)
		late := time.After(stopWithin)
		if _, err := send(v.serverSocket(), stopWithin, o); err != nil {
			v.kill(s)
		}
		select {
		case <-s.ended:
		case <-late:
			v.kill(s)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = false
	return outcome{}
}

// status returns the outcome of the hook status.
func (v *supervisor) status() outcome {
	s, role, failed := v.now()
	switch {
	case s == nil && failed:
		return outcome{Code: exitFailedPrimary, Error: "it was primary, and its server exited without a stop command"}
	case s == nil:
		return outcome{Code: exitStopped}
	}
	out, err := send(v.serverSocket(), answerWithin, order{Command: "view"})
	switch {
	case err != nil && s.endsNow():
		return v.status()
	case err != nil && role == primary:
		return outcome{Code: exitFailedPrimary, Error: err.Error()}
	case err != nil:
		return outcome{Code: exitFailed, Error: err.Error()}
	}
	out.Code = map[string]int{none: exitStopped, primary: exitPrimary}[out.View.Role]
	return out
}

// sequence returns the sequence of the copy, from the server or from the disk.
func (v *supervisor) sequence() outcome {
	if s, _, _ := v.now(); s != nil {
		if out, err := send(v.serverSocket(), answerWithin, order{Command: "view"}); err == nil {
			return outcome{Output: fmt.Sprintln(out.View.Sequence)}
		}
	}
	entries, _, err := readLog(v.dir)
	if err != nil {
		return outcome{Code: exitFailed, Error: err.Error()}
	}
	var last record.Entry
	if len(entries) > 0 {
		last = entries[len(entries)-1]
	}
	return outcome{Output: fmt.Sprintln(last.Sequence())}
}
