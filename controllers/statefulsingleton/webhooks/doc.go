// Package webhooks implements the webhooks of StatefulSingletons and of their pods.
package webhooks
