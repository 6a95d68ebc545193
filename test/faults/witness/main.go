// Command witness is a program that must not run twice at a time, and that
// tells whether it did. It writes into a folder, which all nodes of the local
// cluster share, when it starts and when it stops, and holds a lock there while
// it lives: whoever waits for that lock sees the end of a program that was
// killed. When it starts it looks whose locks are held.
//
// The arguments are not its own but part of its testimony. What it does comes
// in the environment:
//
//	WITNESS_DIR           the folder; /witness.d if not said
//	WITNESS_TO            a scribe that keeps the folder instead: tcp://host:port/path
//	POD, POD_UID, NODE    who it is
//	WITNESS_EXIT_AFTER    ends by itself after this long
//	WITNESS_EXIT_CODE     with this
//	WITNESS_STOP_AFTER    runs on for this long after SIGTERM
//	WITNESS_STOP_FILE     runs on after SIGTERM until the folder has this file
//	WITNESS_IGNORE_TERM   runs on until it is killed, if "true"
//	WITNESS_FORK          has a child that holds the lock too, if "true"
//
// Under the name note it writes a line and ends: note TEXT [DURATION] is for
// hooks and init containers, and stays for that long. Under the name alive it
// tells by its exit status whether process 1 is a witness, and so no gate.
package main

import (
	"cmp"
	"fmt"
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
	code, err := 0, error(nil)
	switch filepath.Base(os.Args[0]) {
	case "note":
		err = note(began, os.Args[1:])
	case "alive":
		err = alive()
	default:
		code, err = live(began, stop)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		code = 1
	}
	os.Exit(code)
}

// live is a run.
func live(began int64, stop <-chan os.Signal) (code int, err error) {
	w, err := swear(began)
	if err != nil {
		return 1, err
	}
	fmt.Println("witness: running in pod", w.line.Pod)
	if code, err = strconv.Atoi(cmp.Or(os.Getenv("WITNESS_EXIT_CODE"), "0")); err != nil {
		return 1, err
	}
	exitAfter, err := duration("WITNESS_EXIT_AFTER")
	if err != nil {
		return 1, err
	}
	stopAfter, err := duration("WITNESS_STOP_AFTER")
	if err != nil {
		return 1, err
	}
	var exit <-chan time.Time
	if exitAfter > 0 {
		exit = time.After(exitAfter)
	}
	for {
		select {
		case <-exit:
			return code, w.say(testimony.Stop, "by itself")
		case <-stop:
			if os.Getenv("WITNESS_IGNORE_TERM") == "true" {
				continue
			}
			time.Sleep(stopAfter)
			await(os.Getenv("WITNESS_STOP_FILE"))
			return 0, w.say(testimony.Stop, "on SIGTERM")
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

func duration(name string) (time.Duration, error) {
	value := os.Getenv(name)
	if value == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

func note(began int64, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: note TEXT [DURATION]")
	}
	w, err := newWitness(began)
	if err != nil {
		return err
	}
	if err := w.say(testimony.Note, args[0]); err != nil || len(args) == 1 {
		return err
	}
	d, err := time.ParseDuration(args[1])
	time.Sleep(d)
	return err
}

func alive() error {
	exe, err := os.Readlink("/proc/1/exe")
	if err != nil {
		return err
	}
	if filepath.Base(exe) != "witness" {
		return fmt.Errorf("process 1 is %s", exe)
	}
	return nil
}
