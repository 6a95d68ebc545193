#!/usr/bin/env bash
# Runs the tests against a real API server, whose names begin with TestAPI. The suites of the kinds run
# in parallel processes.
set -euo pipefail
KUBEBUILDER_ASSETS=$(go run ./test/cluster/cmd/cluster build kubernetes)
export KUBEBUILDER_ASSETS KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m

# Prints the folders of the files with a match.
folders() { # PATTERN FOLDER...
  grep -rlE --include='*_test.go' "$@" | xargs -n1 dirname | sort -u | sed 's,^,./,'
}

# The packages in test take longest. Specs of the kinds wait most of the time, also with more processes than CPUs.
# shellcheck disable=SC2046
go test -vet=off -count=1 -p 3 -run '^TestAPI[A-Z]' $(folders 'func TestAPI[A-Z]' test) $(folders 'func TestAPI[A-Z]' cmd controllers)
# shellcheck disable=SC2046
go tool ginkgo run --vet=off --procs=5 --timeout=30m $(folders 'func TestAPI\(' controllers) -- -test.run='^TestAPI$'
