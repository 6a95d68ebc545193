//go:build !linux

package nodeinit

import "errors"

// Run needs the namespaces of Linux.
func Run(string) error { return errors.New("nodes require Linux") }
