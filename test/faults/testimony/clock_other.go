//go:build !linux

package testimony

import "time"

// Now is for systems without nodes, where only the tests of this folder run.
func Now() int64 { return time.Now().UnixNano() }
