#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes sure of a compiler, Bazel and GoogleTest's sources, from Debian's
# packages where something is missing.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

missing=()
command -v bazel >/dev/null || missing+=(bazel-bootstrap)
command -v g++ >/dev/null || missing+=(g++)
command -v make >/dev/null || missing+=(make)
command -v git >/dev/null || missing+=(git)
[[ -f /usr/src/googletest/googletest/src/gtest-all.cc ]] || missing+=(libgtest-dev)
# Without a Python 3.7, another one that can fetch it.
here="$(dirname "${BASH_SOURCE[0]}")"
if [[ ! -x .venv/bin/python ]] && ! "${here}/find_python.sh" >/dev/null 2>&1 &&
  ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
  missing+=(python3-venv)
fi
[[ ${#missing[@]} -eq 0 ]] && exit 0

list="${missing[*]}"
remedy="install them with 'apt-get install ${list}' as root, then run this again"
command -v apt-get >/dev/null ||
  die "Missing: ${list}, and this system has no apt-get to install them: get a" \
    "C++ compiler, Bazel 4.2.3 and GoogleTest's sources in /usr/src/googletest."

as_root=()
if [[ "$(id -u)" != 0 ]]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  elif command -v sudo >/dev/null && [[ -t 0 ]]; then
    as_root=(sudo)
  else
    die "Missing: ${list}, and there is no root right here to install them: ${remedy}."
  fi
fi

say "installing ${list} with apt-get"
mkdir -p .build
export DEBIAN_FRONTEND=noninteractive
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
  apt-get install -y --no-install-recommends "${missing[@]}")
# The lists may be old or absent: refresh them only if needed.
if ! "${install[@]}" >.build/apt.log 2>&1 </dev/null; then
  "${as_root[@]}" apt-get update >.build/apt_update.log 2>&1 </dev/null ||
    die "apt-get update failed, so ${list} cannot be installed: is the network there?" \
      "(log: .build/apt_update.log)"
  logged .build/apt.log "apt-get could not install ${list}: ${remedy}" "${install[@]}"
fi
