package extendedstatefulset

// SetupWith exports setup for tests that replace the function which runs commands in pods.
var SetupWith = setup
