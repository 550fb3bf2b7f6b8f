#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs all GPU benchmarks, one after another: the hash table, steps in tf.Session, and
# steps on several GPUs. Run it from the repository's root on a machine with a GPU and the
# wheel installed for $PYTHON. It needs either Bazel and nvcc, or the programs that
# run_table.sh built on another machine.
set -u
cd "$(dirname "$0")/../.."
failed=0
for part in table session ranks; do
  echo "== $part"
  benchmarks/gpu/run_$part.sh || { echo "failed: $part"; failed=1; }
done
exit $failed
