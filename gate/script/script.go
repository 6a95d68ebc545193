// Package script holds the gate of mode Script, which `gate install` writes into the
// pods that are held so.
package script

import _ "embed" // wrapper.sh

// Name is what the script is called in a pod.
const Name = "entrypoint-wrapper.sh"

// Text is the script. The gate's tests hold it to what they hold the gate to: both
// must do the same.
//
//go:embed wrapper.sh
var Text string
