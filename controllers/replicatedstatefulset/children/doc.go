// Package children builds the objects and the parts of pods that the operator adds. It is pure.
package children
