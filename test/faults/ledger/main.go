// Command ledger is a replicated application for tests: a log to which clients append, with one primary
// and followers. An append is acknowledged when it is on the disks of a majority of the members. So
// none is ever lost if the operator is correct: it starts the newest copy first, and never has two
// primaries.
//
//	ledger supervise   process 1: idle until a command
//	ledger seed | primary | secondary | promote | demote | leave | stop | status | sequence [PEER...]
//	                   a hook: sends a command to process 1, and ends when it is completed
//	ledger kill        ends the server by SIGKILL, and not process 1
//	ledger log         prints the copy's entries, also of a stopped one
//	ledger client ADDR appends and reads, and writes the results
//
// Exit codes of hooks are those of OCF: 0 done, or a running secondary; 7 stopped; 8 primary; 9 a
// primary that failed; 1 anything else. sequence prints epoch<<40|index of the copy's last entry.
//
// The environment of supervise, which hooks share:
//
//	LEDGER_MEMBERS       how many members are configured; required
//	LEDGER_ACKS          followers that must have an append; LEDGER_MEMBERS/2
//	LEDGER_DIR           the data directory; /data
//	LEDGER_SOCKET        the hooks' socket; control.sock in the data directory
//	LEDGER_LISTEN        address for clients and members; :7070
//	LEDGER_PEERS         all members, if SERVICE_NAME does not resolve to them
//	LEDGER_SELF          its own address among them, if it is not its POD_NAME
//	LEDGER_JOURNAL       a folder that all members share for their journals
//	LEDGER_KNOBS         a folder with injected faults, see the type knob
//	LEDGER_ACK_TIMEOUT   how long an append waits for followers; 5s
//	LEDGER_JOIN_TIMEOUT  how long secondary waits for a primary's log; 30s
//	LEDGER_HANDOFF_TIMEOUT  how long demote waits for a follower that has all; 5s
//	POD_NAME, POD_UID, SERVICE_NAME, CHAOS_MODULO
//
// Clients and members are served over HTTP: POST /append, GET /read and /role.
package main

import (
	"fmt"
	"os"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

const usage = "usage: ledger supervise | seed | primary | secondary | promote | demote | leave | stop | status | sequence [PEER...] | kill | log | client ADDR"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(exitUsage)
	}
	os.Exit(run(os.Args[1], os.Args[2:]))
}

func run(command string, args []string) int {
	s := readSettings()
	switch command {
	case "seed", "primary", "secondary", "promote", "demote", "leave", "stop", "status", "sequence", "kill":
		return hook(s, command, args)
	case "supervise":
		supervise(s)
	case "serve":
		serve(s, args[0])
	case "log":
		entries, _, err := readLog(s.dir)
		need(err)
		for _, e := range entries {
			must(os.Stdout.Write(record.Marshal(e)))
		}
	case "client":
		runClient(args)
	default:
		fmt.Fprintln(os.Stderr, usage)
		return exitUsage
	}
	return 0
}

// must returns the value, or exits the program if err is not nil.
func must[T any](value T, err error) T {
	need(err)
	return value
}

// need exits the program if err is not nil.
func need(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "ledger %s: %v\n", os.Args[1], err)
		os.Exit(exitFailed)
	}
}
