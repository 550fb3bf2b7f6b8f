# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Functions for the setup scripts, which source this file: messages and logs.

# Prints one line of progress.
say() { printf '[setup] %s\n' "$*" >&2; }

# Prints an error (what is missing, how to get it) and exits.
die() {
  printf '[setup] ERROR: %s\n' "$*" >&2
  exit 1
}

# Runs a command with its output in a log. Shows the log's end and exits if it fails.
# Args: log file, error message, command...
logged() {
  local log="$1" sentence="$2"
  shift 2
  if ! "$@" >"${log}" 2>&1 </dev/null; then
    tail -n 30 "${log}" >&2
    die "${sentence} (the whole log: ${log})."
  fi
}
