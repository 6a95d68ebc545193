// Package mutant takes one rule out of the operator, to see that tests notice. A test
// that passes without the rule that it is for proves nothing.
//
// The switch stands at the rule, and is set when the operator is built: in what users
// run it is a constant, so that the compiler leaves nothing of it.
package mutant

// Is reports whether this build goes without the rule of that name. A name begins with
// the kind whose unit tests must notice: stc, rss, ests or ssn; or with soak, where only
// faults on real nodes can.
func Is(name string) bool { return name == without }
