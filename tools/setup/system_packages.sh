#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs a compiler and Bazel from Debian's packages if they are missing. With "all" it
# also installs GoogleTest's sources. The servers and libraries for tests of databases and
# queues are optional: without one, its tests are skipped with its name. Args: "build" or
# "all".

set -euo pipefail
part="${1:-all}"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

missing=()
command -v bazel >/dev/null || missing+=(bazel-bootstrap)
command -v g++ >/dev/null || missing+=(g++)
command -v make >/dev/null || missing+=(make)
command -v git >/dev/null || missing+=(git)
if [[ "${part}" == all ]]; then
  [[ -f /usr/src/googletest/googletest/src/gtest-all.cc ]] || missing+=(libgtest-dev)
fi
# If there is no Python 3.7, another Python is needed to fetch it.
here="$(dirname "${BASH_SOURCE[0]}")"
if [[ ! -x .venv/bin/python ]] && ! "${here}/find_python.sh" >/dev/null 2>&1 &&
  ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
  missing+=(python3-venv)
fi

# Loaded at run time and never linked, so the build does not need them.
optional=()
if [[ "${part}" == all ]]; then
  command -v redis-server >/dev/null || optional+=(redis-server)
  [[ -f /usr/include/rocksdb/c.h ]] || optional+=(librocksdb-dev)
  [[ -f /usr/include/hiredis/hiredis.h ]] || optional+=(libhiredis-dev)
  [[ -f /usr/include/librdkafka/rdkafka.h ]] || optional+=(librdkafka-dev)
  command -v h2load >/dev/null || optional+=(nghttp2-client)
fi
[[ ${#missing[@]} -eq 0 && ${#optional[@]} -eq 0 ]] && exit 0

as_root=()
can_install=1
if ! command -v apt-get >/dev/null; then
  can_install=0
elif [[ "$(id -u)" != 0 ]]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  elif command -v sudo >/dev/null && [[ -t 0 && ${#missing[@]} -ne 0 ]]; then
    as_root=(sudo)
  else
    can_install=0
  fi
fi

# Installs packages quietly, with logs in .build. Package lists are refreshed only if the
# first try fails. Args: package...
install() {
  local command=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "$@")
  "${command[@]}" >.build/apt.log 2>&1 </dev/null && return 0
  "${as_root[@]}" apt-get update >.build/apt_update.log 2>&1 </dev/null || return 2
  "${command[@]}" >.build/apt.log 2>&1 </dev/null
}

mkdir -p .build
if [[ ${#missing[@]} -ne 0 ]]; then
  list="${missing[*]}"
  remedy="install them with 'apt-get install ${list}' as root, then run this again"
  command -v apt-get >/dev/null ||
    die "Missing: ${list}, and this system has no apt-get to install them: get a" \
      "C++ compiler, Bazel 4.2.3 and GoogleTest's sources in /usr/src/googletest."
  [[ ${can_install} -eq 1 ]] ||
    die "Missing: ${list}, and root rights are not available to install them: ${remedy}."
  say "installing ${list} with apt-get"
  failed=0
  install "${missing[@]}" || failed=$?
  [[ ${failed} -ne 2 ]] ||
    die "apt-get update failed, so ${list} cannot be installed: is the network available?" \
      "(log: .build/apt_update.log)"
  if [[ ${failed} -ne 0 ]]; then
    tail -n 30 .build/apt.log >&2
    die "apt-get could not install ${list}: ${remedy} (the whole log: .build/apt.log)."
  fi
fi

if [[ ${#optional[@]} -ne 0 ]]; then
  list="${optional[*]}"
  if [[ ${can_install} -eq 1 ]]; then
    say "installing ${list} with apt-get"
    install "${optional[@]}" && exit 0
  fi
  say "not found and not installed: ${list}; the tests that need them skip themselves" \
    "(as root: apt-get install ${list})"
fi
