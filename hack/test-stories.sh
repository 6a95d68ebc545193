#!/usr/bin/env bash
# Runs the stories of all kinds with 100 random orders each, and with every write failing in every way.
# The unit tests run a sample of these.
set -euo pipefail
KUBEBUILDER_ASSETS=$(go run ./test/cluster/cmd/cluster build kubernetes)
export KUBEBUILDER_ASSETS
go test -count=1 -timeout 2h -skip '^TestAPI' ./controllers/statefulcluster ./controllers/statefulsingleton \
  ./controllers/extendedstatefulset ./controllers/replicatedstatefulset -orders=100
go tool ginkgo run --vet=off --procs=3 --timeout=2h \
  ./controllers/statefulcluster ./controllers/statefulsingleton -- -test.run='^TestAPI$' -orders=100
