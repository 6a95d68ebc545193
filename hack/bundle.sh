#!/usr/bin/env bash
# Writes the bundle of one version into a folder. operator-sdk writes into the working directory,
# so the folder is one of its own. OLM creates the Service of the webhooks itself. Mirrors find
# images by digest only, so a bundle whose image has no digest is not for disconnected clusters.
#
# usage: bundle.sh OPERATOR_SDK FOLDER VERSION [PREVIOUS]
# environment: IMAGE SCORECARD_IMAGE ARCHITECTURES EVERY_ARCHITECTURE CHANNELS DEFAULT_CHANNEL
set -euo pipefail
sdk=$1 folder=$2 version=$3 previous=${4:-}

edits=(-e "s|localhost/stateful-operator:[^ ]*|$IMAGE|"
  -e "s|localhost/stateful-operator-scorecard:[^ ]*|$SCORECARD_IMAGE|"
  -e "s|^    olm.skipRange: .*|    olm.skipRange: <$version|")
if [ -n "$previous" ]; then
  edits+=(-e "s|^  version: .*|&\n  replaces: stateful-operator.v$previous|")
fi
if [[ $IMAGE == *@* ]]; then
  edits+=(-e 's|^\(    features.operators.openshift.io/disconnected: \).*|\1"true"|')
fi
for architecture in $EVERY_ARCHITECTURE; do
  [[ " $ARCHITECTURES " == *" $architecture "* ]] ||
    edits+=(-e "/^    operatorframework.io.arch.$architecture: /d" -e "/^ *- $architecture\$/d")
done

rm -rf "$folder" && mkdir -p "$folder" && cp PROJECT "$folder"
go run ./test/manifest/cmd/render config/manifests | sed "${edits[@]}" > "$folder/all.yaml"
cd "$folder"
# operator-sdk reads manifests from a pipe, and not from a file as standard input.
# shellcheck disable=SC2002
cat all.yaml | "$sdk" generate bundle --quiet --overwrite --version="$version" \
  --channels="$CHANNELS" --default-channel="$DEFAULT_CHANNEL"
rm bundle/manifests/stateful-operator-webhook-service_v1_service.yaml
cat >> bundle/metadata/annotations.yaml <<'YAML'

  # The versions of OpenShift that have Kubernetes 1.30 or later.
  com.redhat.openshift.versions: v4.17
YAML
cat > bundle/metadata/properties.yaml <<'YAML'
# Other operators can depend on this label.
properties:
- type: olm.label
  value: {label: stateful-workloads}
YAML
cat >> bundle.Dockerfile <<'DOCKERFILE'

# The versions of OpenShift that have Kubernetes 1.30 or later.
LABEL com.redhat.openshift.versions=v4.17
DOCKERFILE
