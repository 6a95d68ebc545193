package checkcommands

// rule is a requirement for commands, and the remedy for a violation.
type rule struct{ text, remedy string }

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
	ruleLeave
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
	ruleIdle: {"status of a stopped member always returns 7",
		"return 7 from status while nothing runs; check only the own pod, and start or change nothing"},
	ruleStoppedStop: {"stop of a stopped member succeeds",
		"return 0 from stop if nothing runs"},
	ruleStoppedSequence: {"sequence of a stopped member prints one integer, which does not change",
		"print one unsigned decimal that fits 64 bits, and nothing else, on standard output; write everything else to standard error. Read it from the disk: the program does not run. A copy without data prints 0"},
	ruleSeed: {"the first start succeeds, and status then returns primary",
		"return from seed (or primary) only when status would return 8"},
	ruleAgain: {"a start of a running member succeeds without effect",
		"check first whether the program runs, and return 0 if it does; the operator retries a start with an unknown result"},
	ruleRunningSequence: {"sequence of a running member prints one integer, and changes nothing",
		"print one unsigned decimal, also while the program runs; query the program, or read its files"},
	ruleJoin: {"another member joins the primary in its arguments, and status then returns its role",
		"return only when the program runs in its role: status 0 after secondary, 8 after primary. The names of the primaries are the last arguments, without a port"},
	rulePromote: {"a secondary whose primary was stopped can become primary, and status then returns 8",
		"return from promote (or primary) only when status would return 8. The command gets no names if there is no other primary, and must not wait for one"},
	ruleRejoin: {"a stopped member joins again",
		"update the copy to that of the primary, regardless of its content: data that only the old copy has is discarded"},
	ruleDemote: {"demote ends the role: status then returns 0 or 7",
		"return from demote only when the program is no longer primary. The member's own name is among the arguments"},
	ruleLeave: {"a member leaves, running or stopped, and joins again",
		"ask one of the primaries in the arguments to remove $POD_NAME, and return 0 if it has forgotten the member already. Let secondary (or primary) add the member again"},
	ruleLasting: {"sequence does not decrease when a member is stopped and started",
		"write the number to the disk before a write is acknowledged, or count the data on the disk; do not count from the start of the program"},
	ruleStop: {"after stop, status always returns 7",
		"return from stop only when the program has exited; kill it if necessary"},
	ruleProcesses: {"stop leaves no process of the application running",
		"stop the whole process group, and wait for it"},
	ruleProgram: {"the program of every command can be started",
		"use its path in the image of the container in which commands run, and make it executable. There is no shell"},
	ruleEnds: {"every command returns before its timeout",
		"make the command faster, or increase its timeout. A hanging command blocks the set, and its pod is recreated"},
	ruleStream: {"no command keeps its output stream open after it has taken effect",
		"start processes that keep running with their own standard streams: setsid program </dev/null >/proc/1/fd/1 2>&1 &. Otherwise check whether the command waits for an event that never occurs"},
	ruleOutput: {"the output of a command is smaller than 64 KiB",
		"print less: the operator reads at most 64 KiB, and aborts at 16 MiB"},
	ruleCodes: {"commands return only valid exit codes",
		"0 means success. status: 0, 7, 8, or 190 and 191 for degraded. All others mean failure; 2 to 5 exclude the pod, 6 the whole set"},
	ruleProcessOne: {"process 1 keeps running, and no container is restarted",
		"process 1 has to idle, reap children, and exit on SIGTERM only; it must not exit with the program"},
}

// meanings describes exit codes: those of OCF, of shells and of kernels.
var meanings = map[int]string{
	1: "generic error", 2: "wrong arguments", 3: "not implemented", 4: "no permission",
	5: "not installed", 6: "not configured", 7: "not running", 8: "running as primary", 9: "failed as primary",
	126: "not executable", 127: "program not found", 137: "killed, SIGKILL", 139: "crashed, SIGSEGV", 143: "terminated, SIGTERM",
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
