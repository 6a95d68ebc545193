// Package status reports the result of a pass: conditions, events and metrics.
package status
