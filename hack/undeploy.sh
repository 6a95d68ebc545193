#!/usr/bin/env bash
# Removes the operator, its CRDs, and with them all objects of its kinds, in the order of
# docs/guide/uninstall.md: the operator removes the finalizers of the objects, and it must be gone
# before its guard is deleted, or it recreates it. Without the CRD of its parameters, the guard
# denies every pod.
#
# usage: undeploy.sh KUBECTL
set -euo pipefail
kubectl=$1

# Deletes all objects of a kind, if its CRD exists.
delete_all() { # CRD TIMEOUT
  [ -n "$("$kubectl" get crd "$1" --ignore-not-found -o name)" ] || return 0
  "$kubectl" delete "$1" --all-namespaces --all --timeout="$2" || {
    echo "Some ${1%%.*} still exist, and nothing else was removed. Does the operator run? docs/guide/uninstall.md has the commands if it cannot." >&2
    exit 1
  }
}

singletons=statefulsingletons.apps.openshift.statefulsingleton.com
if [ -n "$("$kubectl" get crd $singletons --ignore-not-found -o name)" ]; then
  "$kubectl" annotate $singletons --all-namespaces --all --overwrite apps.statefulsingleton.com/release-now=true || true
fi
delete_all $singletons 2m
delete_all replicatedstatefulsets.clusterlabs.org 20m
delete_all extendedstatefulsets.fissile.cloudfoundry.org 2m
"$kubectl" delete deployment stateful-operator-installer stateful-operator-controller-manager \
  --namespace=stateful-operator-system --ignore-not-found --cascade=foreground
"$kubectl" delete validatingadmissionpolicybindings,validatingadmissionpolicies \
  statefulsingleton-guard-stateful-operator-system statefulsingleton-lease-guard-stateful-operator-system \
  replicatedstatefulset-lease-guard-stateful-operator-system --ignore-not-found
"$kubectl" delete --ignore-not-found -k config/default
