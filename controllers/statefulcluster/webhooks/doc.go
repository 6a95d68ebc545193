// Package webhooks implements the webhook of StatefulClusters and declares the permissions of requesters.
package webhooks
