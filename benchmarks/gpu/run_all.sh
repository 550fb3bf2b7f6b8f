#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Everything that is measured on GPUs, one table after the other: the hash table, steps
# in tf.Session, steps over several GPUs. Run from the repository's root on a machine
# with a GPU and the wheel installed for $PYTHON, and either Bazel and nvcc or the
# programs that run_table.sh has built on another.
set -u
cd "$(dirname "$0")/../.."
failed=0
for part in table session ranks; do
  echo "== $part"
  benchmarks/gpu/run_$part.sh || { echo "failed: $part"; failed=1; }
done
exit $failed
