// Package switched tells a test program which mutant to run. Only the files that command mutant
// generates import it.
package switched

import "os"

// Variable is the environment variable with the name of the mutant; without it there is none.
const Variable = "MUTANT"

var name = os.Getenv(Variable)

// On reports whether the program runs that mutant.
func On(mutant string) bool { return name == mutant }
