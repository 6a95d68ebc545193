// Package lease runs a program while a Lease names its pod as the holder. It is the agent's side of the protocol
// that package fencing of the operator describes.
//
// Holder decides, and has neither a clock nor a client. The runner executes its steps: one request at a time, a
// watch that only reports changes, the signals, the program, and the watchdog. The watchdog depends on none of the
// others. It ends the container when no renewal has succeeded for 2/3 of the duration.
package lease
