// Package spec computes defaults, checks the object, and evaluates selectors. It is pure.
package spec
