#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs Bazel for the TensorFlow of .build/tf-VERSION, with an output base of its own, so that
# a build for another TensorFlow stays as it is. Results are in .build/tf-VERSION/bazel-bin.
# Args: VERSION, command of Bazel, its arguments...

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version="$1"
command="$2"
shift 2
environment="${PWD}/.build/tf-${version}"
exec bazel "--output_base=${environment}/bazel" "--bazelrc=${environment}/bazelrc" \
  "${command}" "--symlink_prefix=${environment}/bazel-" "$@"
