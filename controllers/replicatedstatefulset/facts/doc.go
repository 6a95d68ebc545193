// Package facts has the input of a decision (World), and derives the facts that rules and
// conditions use. It is pure.
package facts
