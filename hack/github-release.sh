#!/usr/bin/env bash
# Creates the release of a version on GitHub. A version with a suffix is a prerelease.
#
# usage: github-release.sh VERSION DIST
set -euo pipefail
version=$1 dist=$2 kind=()
if [[ $version == *-* ]]; then kind=(--prerelease); fi
gh release create "v$version" --verify-tag --title "v$version" --notes-file "$dist/release-notes.md" \
  "${kind[@]}" "$dist"/*
