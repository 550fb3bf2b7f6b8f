# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts beside it: where their programs come from. Bazel builds
# them, so a script has no list of sources that could fall behind. A machine with a
# GPU and no Bazel runs what was built on another: the step "build" there, its
# folder carried over, the other steps here. The programs need a driver, libc and
# libstdc++.

# Prints "build" if this machine can: the first step of a script without arguments.
default_build() { command -v bazel >/dev/null && echo build; }

# build_programs FOLDER TARGET...: builds the targets, and puts each program into the
# folder under its name; the program of X_test, X_test_program, as X_test.
build_programs() {
  local folder=$1 target program
  shift
  if ! command -v bazel >/dev/null; then
    echo "no bazel on the PATH: run '$0 build' on a machine that has one, and carry" \
      "its $folder to this one" >&2
    return 1
  fi
  if ! bazel build "$@"; then
    echo "not built: $* (where ./configure finds no nvcc there are no such targets)" >&2
    return 1
  fi
  mkdir -p "$folder"
  for target in "$@"; do
    program=${target#//}
    program=bazel-bin/${program/:/\/}
    cp -f "$program" "$folder/$(basename "${program%_program}")" || return 1
  done
}

# need_programs FOLDER NAME...: whether all of them are in the folder.
need_programs() {
  local folder=$1 name
  shift
  for name in "$@"; do
    if [[ ! -x $folder/$name ]]; then
      echo "no program $folder/$name: run '$0 build', on a machine with Bazel and nvcc" >&2
      return 1
    fi
  done
}
