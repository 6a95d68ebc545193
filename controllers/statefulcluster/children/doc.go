// Package children builds revisions, pods, claims and the disruption budget. It is pure.
package children
