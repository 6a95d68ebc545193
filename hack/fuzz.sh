#!/usr/bin/env bash
# Runs each fuzz test for a while. Go writes a failing input to testdata/fuzz, and make test-unit runs
# it from then on. To minimize each new input would take a minute.
#
# usage: fuzz.sh TIME
set -euo pipefail
grep -rno --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' apis config controllers gate scorecard test | sort |
while IFS=: read -r file _ found; do
  name=${found#func } folder=$(dirname "$file")
  printf '\n%s of %s\n' "$name" "$folder"
  go test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "$1" -fuzzminimizetime 20x "./$folder" < /dev/null
done
