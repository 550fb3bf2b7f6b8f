# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the setup scripts: speaking to the user.

# Prints one line of progress.
say() { printf '[setup] %s\n' "$*" >&2; }

# Prints one sentence (what is missing, how to get it) and gives up.
die() {
  printf '[setup] ERROR: %s\n' "$*" >&2
  exit 1
}

# Runs a command with its output in a log; shows the log's end if it fails.
# Args: log file, sentence for the failure, command...
logged() {
  local log="$1" sentence="$2"
  shift 2
  if ! "$@" >"${log}" 2>&1 </dev/null; then
    tail -n 30 "${log}" >&2
    die "${sentence} (the whole log: ${log})."
  fi
}
