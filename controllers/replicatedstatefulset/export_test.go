package replicatedstatefulset

import "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"

// SetupWithRun is Setup with a function that runs commands, because a test API server has no
// kubelets.
var SetupWithRun = setup

// BuildEvictionWebhook returns the webhook configuration that an EvictionWebhook maintains.
var BuildEvictionWebhook = (*webhooks.EvictionWebhook).Build
