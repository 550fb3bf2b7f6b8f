# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cases that are skipped for tables on a GPU, each with the reason.

Most of them count ops: if rows may be on a GPU, the update is another op and a lookup
consists of another number of ops. gpu_test.py counts those.
"""

import collections
import fnmatch

# program: name of the test program. case: "Class.test_name", with wildcards. why: the
# reason, which run.py prints. test_device_only: whether the case is skipped only on the
# test device, not on a GPU. storages: the storages that it is skipped for; None: all.
Exemption = collections.namedtuple(
    "Exemption", ["program", "case", "why", "test_device_only", "storages"])
Exemption.__new__.__defaults__ = (False, None)

_COUNTS = "counts ops of tables in CPU memory; gpu_test counts those of tables on a GPU"
_CPU_DEVICE = "counts ops of a lookup on TensorFlow's CPU device, which is split"
_DRAM = "is about tables in CPU memory"
_OWN_GRAPH = "loads a graph into a process of its own, which has no test device"
_NO_KERNELS = "stock control flow has no kernels for the test device"
_PLACED = "is about tables without a device; run.py gives each one"
_TWO_DEVICES = ("a stock saver needs all tensors of a table on one device, and "
                "placement.py puts stock ops on another")

LIST = [
    Exemption("composed_variables_test", "*.test_one_op_for_all_blocks*", _COUNTS),
    Exemption("group_lookups_test", "*.test_one_update_of_all_tables_*", _COUNTS),
    Exemption("lookups_test", "*.test_a_table_used_twice_is_in_one_op*", _COUNTS),
    Exemption("lookups_test", "*.test_many_tables_in_a_few_ops*", _COUNTS),
    Exemption("lookups_test", "*.test_one_update_for_all_tables*", _COUNTS),
    Exemption("gpu_test", "PartsTest.test_number_of_parts*", _CPU_DEVICE),
    Exemption("gpu_test", "PartsTest.test_parts_give_the_bits_of_one_op*", _CPU_DEVICE),
    Exemption("dynamic_variable_test", "*.test_where_rows_are[34]*", _DRAM),
    Exemption("options_test", "*.test_storage_of_rows*", _DRAM),
    Exemption("install_test", "SummariesTest.*",
              "counts the charts of tables in CPU memory; those on a GPU have hits and "
              "misses besides"),
    Exemption("serving_test", "SimpleSaveTest.*", _TWO_DEVICES),
    Exemption("policies_test", "CapacityTest.test_memory_is_bounded*",
              "bounds slabs of 2 MiB in CPU memory; GPU memory comes in chunks of up "
              "to 8 MiB",
              storages=("hbm", "hbm_dram", "hbm_dram_ssd")),
    Exemption("optimizers_test", "*.test_rows_equal_those_of_a_dense_variable7*",
              "Keras' Adam consists of stock ops, which a GPU rounds differently by "
              "5e-6"),
    Exemption("handle_ops_test", "*.test_process_ends_cleanly_with_a_live_session*",
              "starts a process that does not find this repository's helpers"),
    Exemption("checkpoint_test", "*.test_slots_can_be_initialized_and_listed*",
              _NO_KERNELS, True),
    Exemption("lookups_test", "*.test_cond*", _NO_KERNELS, True),
    Exemption("lookups_test", "*.test_untaken_branch_inserts_nothing*", _NO_KERNELS,
              True),
    Exemption("lookups_test", "*.test_while_loop1*", _NO_KERNELS, True),
    Exemption("control_flow_v2_test", "*.test_gradients_of_control_flow_v2_are_refused5*",
              "TensorFlow 1.15 cannot place a loop of control flow v2 whose body reads a "
              "resource on a GPU"),
    Exemption("creation_test", "StrategiesTest.test_no_device*", _PLACED),
    Exemption("training_test", "LossScaleTest.*", _NO_KERNELS, True),
    Exemption("serving_test", "EstimatorTest.*", _OWN_GRAPH, True),
    Exemption("training_test", "*.test_train_evaluate_predict_export*", _OWN_GRAPH,
              True),
]


def why(program, case, storage, on_test_device):
  """Returns why a case is skipped, or None if it runs.

  Args:
    program: string, "lookups_test".
    case: string, "LookupsTest.test_empty"; "LookupsTest.*" stands for all cases of a
      class.
    storage: one of placement.STORAGES.
    on_test_device: bool, whether the GPU is the engine's test device.
  """
  for exemption in LIST:
    if (exemption.program == program and fnmatch.fnmatchcase(case, exemption.case) and
        (on_test_device or not exemption.test_device_only) and
        (exemption.storages is None or storage in exemption.storages)):
      return exemption.why
  return None
