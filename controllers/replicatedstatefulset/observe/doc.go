// Package observe reads the state of a set for a pass, and keeps the memory of the process.
package observe
