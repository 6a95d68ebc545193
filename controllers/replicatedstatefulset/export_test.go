package replicatedstatefulset

// SetupWithRun is Setup with another way to run commands: an API server without
// kubelets has none.
var SetupWithRun = setup

// BuildEvictionWebhook is what is kept by it.
var BuildEvictionWebhook = (*EvictionWebhook).build
