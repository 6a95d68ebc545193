package main

import (
	"strings"

	"github.com/stateful-operator/stateful-operator/gate/script"
	"github.com/stateful-operator/stateful-operator/gate/selfcopy"
)

// install copies this program to dir/gate, and the script next to it. The copies are atomic, even after
// a crash, and can replace a running program.
func install(dir string) int {
	err := selfcopy.To(dir, "gate")
	if err == nil {
		err = selfcopy.Write(dir, script.Name, strings.NewReader(script.Text))
	}
	if err != nil {
		say("cannot install the gate: " + err.Error())
		return exitFailure
	}
	return 0
}
