// Package facts derives the facts that rules and conditions need from what a pass has read and from
// the record. It is pure.
package facts
