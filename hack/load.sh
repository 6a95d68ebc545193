#!/usr/bin/env bash
# Builds the operator's image and loads it into the local cluster, if KUBECONFIG is unset or is that of
# the local cluster, and the image is in no registry.
#
# usage: load.sh IMAGE
set -euo pipefail
image=$1
cluster=(go run ./test/cluster/cmd/cluster)
local=$("${cluster[@]}" kubeconfig 2>/dev/null || true)
if [ "${KUBECONFIG:-$local}" = "$local" ] && [[ $image == localhost/* ]]; then
  make image IMAGE="$image"
  "${cluster[@]}" load build/stateful-operator.tar
fi
