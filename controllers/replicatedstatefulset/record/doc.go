// Package record advances the record of grants, commands, failures and orders by what a pass has
// read. It is pure.
package record
