# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tests that TensorFlow 2.x can pass, in the environment .build/tf-VERSION.

Those of eager execution, on one rank and on several; and units of the Python packages, the
conformance suites, both addons and programs for ranks, under tf.compat.v1 with 2.x's
behavior disabled (v1_tensorflow.py).
"""

import os

_BAZEL = "tools/setup/bazel_for.sh"

_RANKS = "//tests/distributed:"

_EAGER = [
    "//tests/eager/...",
    _RANKS + "eager_default_rows_test",
    _RANKS + "eager_guide_test",
    _RANKS + "ranks_files_utest_on_1_ranks",
    _RANKS + "ranks_files_utest_on_2_ranks",
    _RANKS + "ranks_files_utest_on_4_ranks",
    _RANKS + "ranks_utest_on_1_ranks",
    _RANKS + "ranks_utest_on_2_ranks",
    _RANKS + "ranks_utest_on_2_ranks_by_memory",
    _RANKS + "ranks_utest_on_2_ranks_by_nccl_in_hbm",
    _RANKS + "ranks_utest_on_4_ranks",
]

# Horovod has no optimizer for Keras 3.
_KERAS_2 = [_RANKS + "eager_faults_test"] + [
    _RANKS + "ranks_keras_utest_on_%d_ranks" % n for n in (1, 2, 4)]

# Keras 3 does not work in graph mode.
_GRAPH = [
    "//tests/conformance/...",
    "-//tests/conformance/gpu_device/...",  # a device for the classes of TensorFlow 1.15
    "//python/embedding_variable:lib_test",
    "//python/embedding_variable:tf_names_test",
    "//python/embedding_variable/checkpoint/...",
    "//python/embedding_variable/lookup/...",
    "//python/embedding_variable/ops/...",
    "//python/embedding_variable/optimizers/...",
    "//python/embedding_variable/variables/...",
    "//addons/hierarchical_parameter_server/python/...",
    "//addons/hugectr/python/...",
    "//addons/serving/python/...",
    "//tests/train_then_serve:kills_test",
    "//tests/train_then_serve:soak_test",
    _RANKS + "api_utest_on_2_ranks",
    _RANKS + "distributed_lookup_utest_on_2_ranks",
    _RANKS + "distributed_lookup_utest_on_2_ranks_by_memory",
    _RANKS + "distributed_lookup_utest_on_4_ranks",
    _RANKS + "distributed_optimizer_utest_on_2_ranks",
    _RANKS + "distributed_optimizer_utest_on_2_ranks_by_nccl",
    _RANKS + "distributed_rules_utest_on_2_ranks",
    _RANKS + "dump_load_utest_on_2_ranks",
    _RANKS + "exchange_utest_on_2_ranks",
    _RANKS + "gradient_norms_utest_on_2_ranks",
    _RANKS + "legacy_utest_on_2_ranks",
    _RANKS + "models_utest_on_2_ranks",
    _RANKS + "serving_utest_on_2_ranks",
    _RANKS + "session_utest_on_2_ranks",
    _RANKS + "sok_variables_utest_on_2_ranks",
    _RANKS + "threads_utest_on_2_ranks",
]


def _with_keras_2(version):
  """Returns the flags with which a test gets Keras 2, which TensorFlow has up to 2.15."""
  return ["--test_env=TF_USE_LEGACY_KERAS=1"] if int(version.split(".")[1]) > 15 else []


# Programs that tools/setup runs before, each with the version.
SET_UP = ["tools/setup/other_tensorflow.sh", "tools/setup/test_packages_for.sh",
          "tools/setup/horovod_for.sh"]


def command(version):
  """Returns the words that stand for `bazel` with a TensorFlow of 2.x."""
  return [_BAZEL, version]


def programs(version):
  """Returns the folder of the programs that Bazel builds for a TensorFlow of 2.x."""
  return ".build/tf-%s/bazel-bin" % version


def eager(version):
  """Returns [(name, targets, flags)], the runs of bazel_test of eager execution and Keras."""
  # Without a GPU its tests skip all cases, after minutes of compilation.
  flags = [] if os.path.exists("/dev/nvidia0") else ["--test_tag_filters=-gpu"]
  keras_2 = _with_keras_2(version)
  if not keras_2:
    return [("eager_" + version, _EAGER + _KERAS_2, flags)]
  return [("eager_" + version, _EAGER, flags), ("keras_" + version, _KERAS_2, keras_2)]


def graph(version):
  """Returns [(name, targets, flags)] of graph mode."""
  return [("graph_" + version, _GRAPH, ["--test_env=EV_TEST_V1=1"] + _with_keras_2(version))]
