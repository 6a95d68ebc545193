#!/usr/bin/env bash
# Runs scorecard in the cluster of KUBECONFIG. With LOCAL, that cluster is the local one, and the images
# are built and loaded first.
#
# usage: scorecard.sh KUBECTL SELECTOR
set -euo pipefail
kubectl=$1 selector=$2 untar=
if [ -n "${LOCAL:-}" ]; then
  make --no-print-directory scorecard-image OTHER_IMAGE=localhost/busybox:1
  go run ./test/cluster/cmd/cluster load build/scorecard.tar build/scorecard-test.tar
  untar=quay.io/operator-framework/scorecard-test:v1.42.3
fi
"$kubectl" apply -k config/scorecard/rbac
go run ./test/scorecard/cmd/scorecard run --bundle=bundle --out=build --selector="$selector" --untar="$untar"
