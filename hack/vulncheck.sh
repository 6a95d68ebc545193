#!/usr/bin/env bash
# Finds known vulnerabilities in all programs of a release. It fails if the database is unreachable,
# unless the second argument is "passes".
#
# usage: vulncheck.sh DATABASE [passes]
set -euo pipefail
if found=$(go tool -modfile=tools/vulncheck/go.mod govulncheck -db "$1" . ./gate ./agent ./cmd/kubectl-stateful 2>&1); then
  echo "$found"
elif [ "${2:-}" = passes ] && [[ $found == *'fetching vulnerabilities'* ]]; then
  echo "vulnerabilities are unknown: $found"
else
  echo "$found" >&2
  exit 1
fi
