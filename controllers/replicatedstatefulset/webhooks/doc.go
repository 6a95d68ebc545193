// Package webhooks implements the webhooks of ReplicatedStatefulSets and of evictions, and declares
// the permissions of requesters.
package webhooks
