#!/usr/bin/env bash
# Runs the validators of OLM on bundle/ and catalog/. Warnings are errors.
#
# usage: check-bundle.sh OPERATOR_SDK OPM
set -euo pipefail
mkdir -p build
export PATH=$PWD/test/bundle/testdata:$PATH
for suite in suite=operatorframework name=multiarch; do
  "$1" bundle validate bundle --select-optional $suite --optional-values=container-tools=none 2>&1 | tee build/validate.log
  ! grep -iE 'level=(warn|err|fatal)' build/validate.log || exit 1
done
"$2" validate catalog
go test -run '^TestBuiltIn' ./test/scorecard
go test ./test/bundle/...
