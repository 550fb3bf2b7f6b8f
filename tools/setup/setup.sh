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

# What the last complete setup was made from.
wanted="$(cat tools/setup/requirements*.txt tools/setup/venv.sh tools/setup/configure.py | sha256sum)
${PYTHON:-}"
if [[ "$(cat .build/setup.stamp 2>/dev/null)" == "${wanted}" && -f .bazelrc.user ]] &&
  .venv/bin/python -c '' 2>/dev/null; then
  exit 0
fi
rm -f .build/setup.stamp

python="$(tools/setup/find_python.sh --install)"
say "Python 3.7 is ${python}"
tools/setup/venv.sh "${python}"
.venv/bin/python tools/setup/configure.py
printf '%s\n' "${wanted}" >.build/setup.stamp
say "done: .venv is made and the build is configured"
