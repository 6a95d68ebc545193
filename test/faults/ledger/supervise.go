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

// The exit codes of the hooks, as OCF has them.
const (
	exitFailed        = 1
	exitUsage         = 2
	exitStopped       = 7
	exitPrimary       = 8
	exitFailedPrimary = 9
)

const (
	answerWithin = 10 * time.Second // a server that does not say its role hangs
	stopWithin   = 10 * time.Second // and is killed if it does not stop
)

// supervisor is process 1: it does nothing until it is told.
type supervisor struct {
	settings
	journal *journal

	commands sync.Mutex // one at a time, but for those that only ask

	mu     sync.Mutex // guards what follows
	server *server    // nil if none runs
	role   string     // that the server had when it last answered
	failed bool       // it was primary and ended without being told
}

func supervise(s settings) {
	if s.members < 1 {
		need(errors.New("LEDGER_MEMBERS is needed: how many members are configured"))
	}
	need(os.MkdirAll(s.dir, 0o755))
	v := &supervisor{settings: s, journal: must(openJournal(s, newRun()))}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	listener := must(listenUnix(s.socket))
	v.journal.say(record.Line{What: record.Start})
	fmt.Println("ledger: idle until told")
	go func() { need(http.Serve(listener, handler(v.take))) }()
	for sig := range signals {
		v.reap()
		if sig != syscall.SIGCHLD {
			go v.terminate()
		}
	}
}

// terminate ends as its pod is asked to, unless a knob says otherwise.
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

// take takes the order of a hook. It is carried out to its end, also if the hook
// that gave it is gone.
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

// carryOut obeys a command, and writes down when it came and when it was done.
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
	case "stop":
		out = v.stop(o)
	default:
		out = outcome{Code: exitUsage, Error: "no such command: " + o.Command}
	}
	v.journal.say(record.Line{What: record.Done, Text: fmt.Sprintf("%s: %d %s", o.Command, out.Code, out.Error)})
	return out
}

// now is the server, the role it had, and whether it failed as primary.
func (v *supervisor) now() (*server, string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.server, v.role, v.failed
}

// start starts a server if there is none. One that this did not help is not
// left running.
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

// order gives an order to the server, and tells what came of it.
func (v *supervisor) order(s *server, o order) outcome {
	out, err := send(v.serverSocket(), 0, o)
	if err != nil {
		if s.endsNow() {
			err = errors.New("the server has ended")
		}
		return outcome{Code: exitFailed, Error: fmt.Sprintf("%s: %v", o.Command, err)}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.role = out.View.Role
	return out
}

// stop returns when the server has ended, however: then it is stopped.
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

// status is what the hook status ends with.
func (v *supervisor) status() outcome {
	s, role, failed := v.now()
	switch {
	case s == nil && failed:
		return outcome{Code: exitFailedPrimary, Error: "it was primary, and its server ended without being told"}
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

// sequence is the number of the copy, from the server or from the disk.
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
