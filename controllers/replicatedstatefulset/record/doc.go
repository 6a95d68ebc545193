// Package record updates the record of grants, commands, failures and orders by the facts of a
// pass. It is pure.
package record
