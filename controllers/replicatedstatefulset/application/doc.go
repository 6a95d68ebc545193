// Package application fills the fields of a ReplicatedStatefulSet with spec.application, as if its
// user had set them. It is pure, and kubectl-stateful uses it too.
package application
