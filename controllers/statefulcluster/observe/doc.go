// Package observe reads the state of a set for a pass, and remembers the results of writes.
package observe
