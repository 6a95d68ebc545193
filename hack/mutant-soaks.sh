#!/usr/bin/env bash
# Runs the soak tests with mutants of the operator. Each run must fail, or the faults find nothing.
set -euo pipefail

# Runs a target with each of its mutants, and fails if the log has no failure of a promise.
soak() { # TARGET PROMISE ARGUMENT...
  local target=$1 promise=$2
  shift 2
  for mutant in $(go run ./test/faults/mutant soak "$target"); do
    log=build/mutant-$mutant.log
    printf 'with %s: ' "$mutant"
    make "$target" SEED=7 MUTANT="$mutant" "$@" > "$log" 2>&1 || true
    grep -q "\[FAIL\].*$promise" "$log" || { echo "not found, see $log" >&2; exit 1; }
    echo found
  done
}

soak soak-replicated 'RS-43' PROMISE=RS-43 RUNS=3
soak soak-freeze 'V[23] ' FREEZES=0 FAULT='StatefulCluster scale'
