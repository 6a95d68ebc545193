// Command traces checks recorded runs of a cluster against the model of the Leases that fence programs. The model is in
// the tests of package controllers/internal/fencing, and decisions 0052 and 0053 describe it.
//
//	go run ./test/traces [-mutate all] FOLDER...
//	go run ./test/traces FILE...
//
// A trace is the audit log of an API server and the logs of containers. In a folder these are the files audit*.log, and
// the files that kubelets write: NAMESPACE_POD_UID/CONTAINER/N.log. The audit policy must log writes of Leases with level
// RequestResponse, and those of pods/status with level Request.
//
// Each step between two versions of a Lease must be a move of the model, by the requester that makes this move. Each
// program must have been started, and must have ended, as the model requires. A violation is printed with the name of the
// rule. Rules that the model drops one by one have the same name here.
//
// With -mutate, seeded faults change the trace in memory, and the rule of each must reject it.
//
// The exit code is 1 after a violation, and 2 if the trace cannot be checked: no Lease was written, or no program was
// started. Of several folders, those without Leases and agents are skipped, but not all of them. go run prints the exit
// code 2, and exits with 1.
package main
