// Package mutant takes one rule out of the operator, to see that tests notice. A test
// that passes without the rule that it is for proves nothing.
//
// The switch stands at the rule, and is set when the operator is built: in what users
// run it is a constant, so that the compiler leaves nothing of it.
package mutant

// Is reports whether this build goes without the rule of that name. The unit tests of
// the package that asks must fail without it; `make mutants` tries. The name is a literal,
// and the comment before the call, or at the end of its line, says what the operator does
// without the rule.
func Is(name string) bool { return name == without }
