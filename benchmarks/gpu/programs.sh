# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Functions that build the programs of the scripts in this folder. The scripts source this
# file. Bazel builds the programs, so scripts need no list of source files. For a machine
# that has a GPU but no Bazel, run the step "build" on another machine, copy its folder
# and run the other steps. The programs need a driver, libc and libstdc++.

# Prints "build" if Bazel is installed: the first default step of a script.
default_build() { command -v bazel >/dev/null && echo build; }

# build_programs FOLDER TARGET...: builds the targets and copies each program into the
# folder under its own name. The program of X_test, X_test_program, is named X_test.
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

# need_programs FOLDER NAME...: fails unless all of these programs are in the folder.
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
