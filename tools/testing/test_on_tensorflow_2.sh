#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests that TensorFlow 2.x can pass, in the environment .build/tf-VERSION: those of
# eager execution, on one rank and on several; and units of the Python packages, the
# conformance suites, both addons and programs for ranks, under tf.compat.v1 with 2.x's
# behavior disabled (v1_tensorflow.py). Args: VERSION, and targets in place of the latter.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version="$1"
shift
targets=("$@")
failed=0
on_ranks=//tests/distributed
if [[ ${#targets[@]} -eq 0 ]]; then
  targets=(
    //tests/conformance/...
    -//tests/conformance/gpu_device/...  # a device for the classes of TensorFlow 1.15
    //python/embedding_variable:lib_test
    //python/embedding_variable:tf_names_test
    //python/embedding_variable/checkpoint/...
    //python/embedding_variable/lookup/...
    //python/embedding_variable/ops/...
    //python/embedding_variable/optimizers/...
    //python/embedding_variable/variables/...
    //addons/hierarchical_parameter_server/python/...
    //addons/hugectr/python/...
    "${on_ranks}:distributed_lookup_utest_on_2_ranks"
    "${on_ranks}:distributed_lookup_utest_on_4_ranks"
    "${on_ranks}:distributed_lookup_utest_on_2_ranks_by_memory"
    "${on_ranks}:distributed_optimizer_utest_on_2_ranks"
    "${on_ranks}:distributed_optimizer_utest_on_2_ranks_by_nccl"
    "${on_ranks}:distributed_rules_utest_on_2_ranks"
    "${on_ranks}:dump_load_utest_on_2_ranks"
    "${on_ranks}:exchange_utest_on_2_ranks"
    "${on_ranks}:gradient_norms_utest_on_2_ranks"
    "${on_ranks}:legacy_utest_on_2_ranks"
    "${on_ranks}:sok_variables_utest_on_2_ranks"
    "${on_ranks}:threads_utest_on_2_ranks"
    "${on_ranks}:"{api,models,serving,session}_utest_on_2_ranks
  )
fi
# Keras 3 does not work in graph mode, and Horovod has no optimizer for it.
keras=()
[[ "${version}" == 2.21 ]] && keras=(--test_env=TF_USE_LEGACY_KERAS=1)
if [[ $# -eq 0 ]]; then
  tools/setup/bazel_for.sh "${version}" test --keep_going //tests/eager/... \
    "${on_ranks}:"eager_{default_rows,faults,guide}_test "${on_ranks}:ranks_utest_on_2_ranks_by_"{memory,nccl_in_hbm} \
    "${on_ranks}:"{ranks,ranks_files}_utest_on_{1,2,4}_ranks || failed=1
  tools/setup/bazel_for.sh "${version}" test --keep_going "${keras[@]}" \
    "${on_ranks}:"ranks_keras_utest_on_{1,2,4}_ranks || failed=1
fi
tools/setup/bazel_for.sh "${version}" test --keep_going --test_env=EV_TEST_V1=1 \
  "${keras[@]}" -- "${targets[@]}" || failed=1
exit "${failed}"
