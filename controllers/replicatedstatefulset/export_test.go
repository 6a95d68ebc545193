package replicatedstatefulset

// SetupWithRun is Setup with another way to run commands: an API server without
// kubelets has none.
var SetupWithRun = setup
