// Command witness is a program that must not run twice at a time, and that records whether it did. It
// reports its start and its stop to an observer, through a socket in a folder that all nodes of the
// local cluster share. It stays connected while it runs, so the observer also detects the end of a
// killed program. In a folder without a socket it writes a diary.
//
// The arguments have no effect and are only recorded. The environment configures it:
//
//	WITNESS_DIR           the folder; default: /witness.d
//	WITNESS_TO            a scribe to use instead: tcp://host:port/path
//	POD, POD_UID, NODE    its pod and node
//	WITNESS_EXIT_AFTER    exits after this time
//	WITNESS_EXIT_CODE     with this code
//	WITNESS_STOP_AFTER    continues for this time after SIGTERM
//	WITNESS_STOP_FILE     continues after SIGTERM until the folder has this file
//	WITNESS_IGNORE_TERM   ignores SIGTERM, if "true"
//	WITNESS_FORK          has a child with the same connection, if "true"
//	WITNESS_ALIVE         answers GET /alive at this address, for probes
//
// Under the name note it writes a line and exits: note TEXT [DURATION] is for hooks and init
// containers, and runs for that duration. Under the name alive its exit status reports whether process
// 1 is a witness, and so not a gate.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

func main() {
	began := testimony.Now()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM) // process 1 only receives signals that it handles
	switch filepath.Base(os.Args[0]) {
	case "note":
		note(began, os.Args[1:])
	case "alive":
		if exe := must(os.Readlink("/proc/1/exe")); filepath.Base(exe) != "witness" {
			fail(fmt.Errorf("process 1 is %s", exe))
		}
	default:
		os.Exit(live(began, stop))
	}
}

// must returns the value, or exits the program if err is not nil.
func must[T any](value T, err error) T {
	if err != nil {
		fail(err)
	}
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "witness:", err)
	os.Exit(1)
}

// live runs a run of the witness and returns the exit code.
func live(began int64, stop <-chan os.Signal) (code int) {
	w := swear(began)
	fmt.Println("witness: running in pod", w.line.Pod)
	if address := os.Getenv("WITNESS_ALIVE"); address != "" {
		http.HandleFunc("GET /alive", func(http.ResponseWriter, *http.Request) {})
		go func() { fmt.Fprintln(os.Stderr, "witness:", http.ListenAndServe(address, nil)) }()
	}
	code = must(strconv.Atoi(cmp.Or(os.Getenv("WITNESS_EXIT_CODE"), "0")))
	stopAfter := duration(os.Getenv("WITNESS_STOP_AFTER"))
	var exit <-chan time.Time
	if exitAfter := duration(os.Getenv("WITNESS_EXIT_AFTER")); exitAfter > 0 {
		exit = time.After(exitAfter)
	}
	for {
		select {
		case <-exit:
			w.say(testimony.Stop, "without SIGTERM")
			return code
		case <-stop:
			if os.Getenv("WITNESS_IGNORE_TERM") == "true" {
				continue
			}
			time.Sleep(stopAfter)
			await(os.Getenv("WITNESS_STOP_FILE"))
			w.say(testimony.Stop, "on SIGTERM")
			return 0
		}
	}
}

// await returns when the folder has a file with this name, or immediately if the name is empty.
func await(name string) {
	for name != "" {
		if _, err := os.Stat(filepath.Join(folder(), name)); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func duration(text string) time.Duration { return must(time.ParseDuration(cmp.Or(text, "0s"))) }

func note(began int64, args []string) {
	if len(args) == 0 {
		fail(errors.New("usage: note TEXT [DURATION]"))
	}
	newWitness(began).say(testimony.Note, args[0])
	if len(args) > 1 {
		time.Sleep(duration(args[1]))
	}
}
