// Package spec computes defaults, checks the object, and has the names, settings and durations of
// the kind. It is pure.
package spec
