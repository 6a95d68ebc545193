#!/usr/bin/env bash
# Writes bundle/ and bundle.Dockerfile, unless only the date of the bundle would change.
#
# usage: update-bundle.sh OPERATOR_SDK VERSION [PREVIOUS]
# environment: as for bundle.sh
set -euo pipefail
sdk=$1
shift
"$sdk" generate kustomize manifests --quiet --interactive=false --apis-dir=apis
hack/bundle.sh "$sdk" build/bundle "$@"
if ! diff -r -I '^    createdAt: ' build/bundle/bundle bundle > build/bundle/diff 2>&1; then
  rm -rf bundle
  cp -r build/bundle/bundle bundle
fi
cp build/bundle/bundle.Dockerfile bundle.Dockerfile
