#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sets up a fresh Debian up to a configured build. It can be run again and does only what
# is missing.
#
#   setup.sh          all: what builds, tests and lints (make setup)
#   setup.sh build    what builds the wheel and runs it in one process (make wheel)

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/setup/common.sh

part="${1:-all}"
mkdir -p .build
exec 9>.build/setup.lock
flock 9 2>/dev/null || true  # Two processes must not write .venv at once.

tools/setup/system_packages.sh "${part}"

# Inputs of .venv and of the configuration. A stamp file stores the inputs of the last
# successful run.
inputs() { printf 'python=%s %s' "${PYTHON:-}" "$(cat tools/setup/venv.sh "$@" | sha256sum)"; }
readonly req=tools/setup/requirements
declare -A venv_from=(
  [build]="$(inputs ${req}-bootstrap.txt ${req}.txt)"
  [all]="$(inputs ${req}-bootstrap.txt ${req}.txt ${req}-dev.txt ${req}-horovod.txt)"
)
matches() { [[ "$(cat "$1" 2>/dev/null)" == "$2" ]]; }
is_made() { matches ".build/venv_$1.stamp" "${venv_from[$1]}" && .venv/bin/python -c '' 2>/dev/null; }

if ! is_made "${part}"; then
  rm -f .build/venv_*.stamp .build/configure.stamp
  python="$(tools/setup/find_python.sh --install)"
  say "Python 3.7 is ${python}"
  tools/setup/venv.sh "${python}" "${part}"
  printf '%s\n' "${venv_from[build]}" >.build/venv_build.stamp
  [[ "${part}" != all ]] || printf '%s\n' "${venv_from[all]}" >.build/venv_all.stamp
fi
# Configures for the whole .venv, which may have more than this part needs.
! is_made all || part=all
configured_from="nvcc=$(command -v nvcc) ${venv_from[${part}]} $(sha256sum <tools/setup/configure.py)"
if ! matches .build/configure.stamp "${configured_from}" || [[ ! -f .bazelrc.user ]]; then
  .venv/bin/python tools/setup/configure.py
  printf '%s\n' "${configured_from}" >.build/configure.stamp
  say "done: .venv is made and the build is configured"
fi
