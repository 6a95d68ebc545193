// Package script contains the gate of mode Script as a shell script. `gate install` copies it into the
// pods of this mode.
package script

import _ "embed" // wrapper.sh

// Name is the file name of the script in a pod.
const Name = "entrypoint-wrapper.sh"

// Text is the script. The tests of the gate also test the script, because both must behave the same.
//
//go:embed wrapper.sh
var Text string
