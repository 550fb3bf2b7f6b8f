#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# make setup: everything between a fresh Debian and a configured build. Can be
# run again; does nothing when there is nothing to do.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/setup/common.sh

mkdir -p .build
exec 9>.build/setup.lock
flock 9 2>/dev/null || true  # Two at a time would share .venv.

tools/setup/system_packages.sh

# What .venv and the configuration were last made from, if all went well.
venv_from="python=${PYTHON:-} $(cat tools/setup/requirements*.txt tools/setup/venv.sh | sha256sum)"
configured_from="nvcc=$(command -v nvcc) ${venv_from} $(sha256sum <tools/setup/configure.py)"
matches() { [[ "$(cat "$1" 2>/dev/null)" == "$2" ]]; }

if ! matches .build/venv.stamp "${venv_from}" || ! .venv/bin/python -c '' 2>/dev/null; then
  rm -f .build/venv.stamp .build/configure.stamp
  python="$(tools/setup/find_python.sh --install)"
  say "Python 3.7 is ${python}"
  tools/setup/venv.sh "${python}"
  printf '%s\n' "${venv_from}" >.build/venv.stamp
fi
if ! matches .build/configure.stamp "${configured_from}" || [[ ! -f .bazelrc.user ]]; then
  .venv/bin/python tools/setup/configure.py
  printf '%s\n' "${configured_from}" >.build/configure.stamp
  say "done: .venv is made and the build is configured"
fi
