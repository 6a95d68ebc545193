// Command witness is a program that must not run twice at a time, and that
// reports whether it did. It tells an observer when it starts and when it stops,
// through a socket in a folder that all nodes of the local cluster share, and
// stays connected while it lives: whoever has the other end sees the end of a
// program that was killed. In a folder without a socket it keeps a diary.
//
// The arguments are not its own but part of its testimony. What it does comes
// in the environment:
//
//	WITNESS_DIR           the folder; /witness.d if not said
//	WITNESS_TO            a scribe to tell instead: tcp://host:port/path
//	POD, POD_UID, NODE    who it is
//	WITNESS_EXIT_AFTER    ends by itself after this long
//	WITNESS_EXIT_CODE     with this
//	WITNESS_STOP_AFTER    runs on for this long after SIGTERM
//	WITNESS_STOP_FILE     runs on after SIGTERM until the folder has this file
//	WITNESS_IGNORE_TERM   runs on until it is killed, if "true"
//	WITNESS_FORK          has a child that has the connection too, if "true"
//	WITNESS_ALIVE         answers GET /alive at this address, for probes
//
// Under the name note it says a line and ends: note TEXT [DURATION] is for
// hooks and init containers, and stays for that long. Under the name alive it
// tells by its exit status whether process 1 is a witness, and so no gate.
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
	signal.Notify(stop, syscall.SIGTERM) // process 1 gets only what it handles
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

// must is what the program needs. It ends without.
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

// live is a run.
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
			w.say(testimony.Stop, "by itself")
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

// await returns when the folder has a file of that name; at once without a name.
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
