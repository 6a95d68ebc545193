#!/usr/bin/env bash
# Runs a target of the Makefile with older versions of Kubernetes.
#
# usage: older.sh test-api|test-core VERSION...
set -euo pipefail
target=$1
shift
for version in "$@"; do
  printf '\nKubernetes %s\n' "$version"
  case $target in
    test-api)
      assets=$(go run ./test/cluster/cmd/cluster build "kubernetes-$version")
      TEST_ASSET_KUBE_APISERVER=$assets/kube-apiserver APISERVER_VERSION=$version make --no-print-directory test-api ;;
    *)
      env -u KUBECONFIG make --no-print-directory "$target" KUBERNETES="$version" ;;
  esac
done
