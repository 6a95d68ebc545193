// Package lease runs a program, or arms a member, while a Lease names its pod as the holder. It is the agent's side
// of the protocol that package fencing of the operator describes.
//
// Holder decides, and has neither a clock nor a client. Its steps are executed by a keeper: one request at a time, a
// watch that only reports changes, and the watchdog. The watchdog depends on none of the others. It ends the
// container when no renewal has succeeded for 2/3 of the duration.
//
// Run adds the program of a StatefulSingleton, and the signals. Keep adds what process 1 of a member does: while it
// is armed, its name in /proc shows the epoch of the Lease, and a command that WaitUntilArmed precedes can begin. It
// asks process 1 by a signal to read the Lease. The watchdog is armed before the first renewal is sent: if its response
// is lost, the operator has seen it, and expects that the container ends. The epoch is shown after the response. The
// watchdog is disarmed after the epoch is hidden, or if the API server has refused the first renewal. A member that is
// not named any more is disarmed, and its container goes on: the operator releases a Lease only if the member is not
// primary.
package lease
