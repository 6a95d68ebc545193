// Package rules decides the actions of a pass. It is pure.
package rules
