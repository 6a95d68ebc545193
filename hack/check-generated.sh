#!/usr/bin/env bash
# Fails if generated files are out of date. It updates them.
#
# usage: check-generated.sh FILE...
set -euo pipefail
before=build/_generated
rm -rf $before && mkdir -p $before
tar cf - "$@" | tar xf - -C $before
make --no-print-directory generate manifests bundle catalog
for path in "$@"; do
  diff -r "$before/$path" "$path" || { echo "Generated files were out of date; they are now up to date: commit them." >&2; exit 1; }
done
