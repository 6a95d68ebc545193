#!/usr/bin/env bash
# Generates the CustomResourceDefinitions, the roles, the webhook configurations, the samples of the
# OpenShift console, the dashboards, and docs/reference.
#
# usage: manifests.sh CONTROLLER_GEN...
set -euo pipefail
mkdir -p build
"$@" crd:generateEmbeddedObjectMeta=true rbac:roleName=unnamed-role webhook \
  paths=./apis/... paths=./controllers/... \
  output:crd:dir=config/crd/bases output:rbac:dir=config/rbac output:webhook:dir=config/webhook
go run ./config/crd/trim config/crd/bases
go run ./config/openshift/generate config/samples > build/console.yaml
mv build/console.yaml config/openshift/samples.yaml
go run ./config/monitoring/generate config/monitoring/dashboards
go run ./config/reference/generate config/crd/bases apis docs/reference
