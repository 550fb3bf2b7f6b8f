#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests that TensorFlow 2.x can pass, in the environment .build/tf-VERSION: those of
# eager execution; and units of the Python packages and the conformance suites, under
# tf.compat.v1 with 2.x's behavior disabled (v1_tensorflow.py). Args: VERSION, and targets
# in place of the latter.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version="$1"
shift
targets=("$@")
failed=0
if [[ ${#targets[@]} -eq 0 ]]; then
  targets=(
    //tests/conformance/...
    //python/embedding_variable:lib_test
    //python/embedding_variable:tf_names_test
    //python/embedding_variable/checkpoint/...
    //python/embedding_variable/lookup/...
    //python/embedding_variable/ops/...
    //python/embedding_variable/optimizers/...
    //python/embedding_variable/variables/...
  )
fi
if [[ $# -eq 0 ]]; then
  tools/setup/bazel_for.sh "${version}" test --keep_going //tests/eager/... || failed=1
fi
tools/setup/bazel_for.sh "${version}" test --keep_going --test_env=EV_TEST_V1=1 \
  -- "${targets[@]}" || failed=1
exit "${failed}"
