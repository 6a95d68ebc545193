// Package spec computes defaults and limits, and checks the spec. It is pure.
package spec
