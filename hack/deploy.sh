#!/usr/bin/env bash
# Applies config/default with an image, and config/monitoring if MONITORING is set. REPLICAS is
# the number of replicas of each Deployment; unset, it is that of config/default.
#
# usage: deploy.sh KUBECTL IMAGE
set -euo pipefail
kubectl=$1 image=$2

case $image in
  *@*) parts="newName: ${image%@*}, digest: ${image#*@}" ;;
  *) parts="newName: ${image%:*}, newTag: \"${image##*:}\"" ;;
esac
mkdir -p build/deploy
{
  echo 'resources: [../../config/default]'
  echo "images: [{name: localhost/stateful-operator, $parts}]"
  if [ -n "${MONITORING:-}" ]; then echo 'components: [../../config/monitoring]'; fi
  if [ -n "${REPLICAS:-}" ]; then
    echo 'replicas:'
    printf -- "- {name: stateful-operator-%s, count: $REPLICAS}\n" controller-manager webhook installer
  fi
} > build/deploy/kustomization.yaml
"$kubectl" apply -k build/deploy
