// Package children builds the objects that the operator creates, and the patch of the pod webhook. It
// also has the names of StatefulSets, claims and Jobs. It is pure.
package children
