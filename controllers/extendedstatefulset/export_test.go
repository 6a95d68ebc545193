package extendedstatefulset

// SetupWith is Setup with another way to run commands in pods.
var SetupWith = setup
