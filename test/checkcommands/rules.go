package main

// rule is a requirement for commands, and the remedy for a violation.
type rule struct{ says, remedy string }

// Rules, in the order of the report.
const (
	ruleIdle = iota
	ruleStoppedStop
	ruleStoppedSequence
	ruleSeed
	ruleAgain
	ruleRunningSequence
	ruleJoin
	rulePromote
	ruleRejoin
	ruleDemote
	ruleLasting
	ruleStop
	ruleProcesses
	ruleProgram
	ruleEnds
	ruleStream
	ruleOutput
	ruleCodes
	ruleProcessOne
	countOfRules
)

var rules = [countOfRules]rule{
	ruleIdle: {"status of a stopped member ends with 7, each time",
		"end status with 7 while nothing runs; it looks at its own pod only, and starts and changes nothing"},
	ruleStoppedStop: {"stop of a stopped member succeeds",
		"end stop with 0 when there is nothing to stop"},
	ruleStoppedSequence: {"sequence of a stopped member prints one whole number, the same each time",
		"print one unsigned decimal that fits 64 bits, and nothing else, on standard output; write all else to standard error. Read it from the disk: the program does not run. A copy without data prints 0"},
	ruleSeed: {"the first start succeeds, and status says primary after it",
		"return from seed (or primary) only when status would end with 8"},
	ruleAgain: {"a start of what runs so already succeeds, and harms nothing",
		"look first whether it runs, and end with 0 if it does; the operator repeats a start whose end it has not seen"},
	ruleRunningSequence: {"sequence of a running member prints one whole number, and changes nothing",
		"print one unsigned decimal, also while the program runs; ask the program, or read what it has written"},
	ruleJoin: {"another member joins the primary that it is told of, and status says its role after it",
		"return only when it runs in its role: status 0 after secondary, 8 after primary. The names of the primaries are the last arguments, without a port"},
	rulePromote: {"a secondary whose primary is gone can become primary, and status says 8 after it",
		"return from promote (or primary) only when status would end with 8. It is given no names when there is no other primary, and must not wait for one"},
	ruleRejoin: {"a member that was stopped joins again",
		"bring the copy up to that of the primary, whatever was in it: what only the old copy has is given up"},
	ruleDemote: {"demote ends the role: status says 0 or 7 after it",
		"return from demote only when it is no primary any more. Its own name is among the arguments"},
	ruleLasting: {"sequence does not fall when a member is stopped and started",
		"write the number to the disk before a write is acknowledged, or count what is on the disk; do not count from the start of the program"},
	ruleStop: {"after stop, status ends with 7, each time",
		"return from stop only when the program has ended; kill it if it does not"},
	ruleProcesses: {"stop leaves no process of the application behind",
		"end the whole group of processes, and wait for it"},
	ruleProgram: {"the program of every command can be started",
		"name it by its path in the image of the container in which commands run, and make it executable. There is no shell"},
	ruleEnds: {"every command ends before its timeout",
		"make the command quicker, or its timeout longer. A command that hangs holds up the set, and costs the pod"},
	ruleStream: {"no command leaves the stream open when it has done its work",
		"start what stays with its own standard streams: setsid program </dev/null >/proc/1/fd/1 2>&1 &. Or it waits for something that does not come"},
	ruleOutput: {"what a command prints stays under 64 KiB",
		"print less: the operator reads no more, and gives up at 16 MiB"},
	ruleCodes: {"commands end with the exit codes that they may have",
		"0 is done. status: 0, 7, 8, or 190 and 191 for degraded. All others count as failed; 2 to 5 bar the pod, 6 the whole set"},
	ruleProcessOne: {"process 1 stays, and no container is restarted",
		"let process 1 idle, reap children, and end on SIGTERM only; it does not end when the program ends"},
}

// meanings describes exit codes: those of OCF, of shells and of kernels.
var meanings = map[int]string{
	1: "generic error", 2: "wrong arguments", 3: "not implemented", 4: "no permission",
	5: "not installed", 6: "not configured", 7: "not running", 8: "running as primary", 9: "failed as primary",
	126: "cannot be executed", 127: "no such program", 137: "killed, SIGKILL", 139: "crashed, SIGSEGV", 143: "ended by SIGTERM",
	190: "running, degraded", 191: "running as primary, degraded",
}

func meaning(code int) string {
	if code == 0 {
		return "success"
	}
	if text, ok := meanings[code]; ok {
		return text
	}
	return "no meaning in OCF"
}
