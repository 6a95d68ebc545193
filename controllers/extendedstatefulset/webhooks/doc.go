// Package webhooks implements the webhooks of ExtendedStatefulSets and of their pods.
package webhooks
