// Package fencing makes sure that a program has ended on a node that cannot be reached, by a Lease that the
// program's agent must renew.
//
// The holder of a Lease D seconds long renews it every D/3. It measures from the moment before a renewal was
// sent, and ends its program when no renewal has succeeded for S = 2/3 D. After a restart it renews first, and
// then starts the program. An operator that has seen the Lease unchanged for D takes it over. From then on the
// holder cannot renew, and because S is less than D its program has ended.
//
// All writes are bound to the resourceVersion that was read. The model in model_test.go shows which of these
// rules are necessary, and which assumptions about clocks and schedulers.
package fencing
