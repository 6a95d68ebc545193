// Package record advances the record of versions and upgrades by what a pass has read. It is pure.
package record
