# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The test programs that run with their tables on a GPU.

It omits programs about something else: sizes of CPU memory and of files (save_memory),
clusters, whose servers have their tables in CPU memory (parameter_servers), the bytes of
damaged files (damage), and rewritten graphs that do not run (graph_rewrite).
"""

_CONFORMANCE = "tests/conformance/"
_PACKAGE = "python/embedding_variable/"
_SOK = "addons/sparse_operation_kit/python/sparse_operation_kit/"

_BOTH = ("hbm", "hbm_dram")

# (path from the repository's root, storages of placement.py).
SUITES = tuple(
    (folder + stem + "_test.py", storages) for folder, storages, stems in (
        (_CONFORMANCE, _BOTH, (
            "adaptive_lookups", "checkpoint", "composed_variables", "control_flow_v2",
            "feature_columns", "golden", "group_lookups", "incremental", "install",
            "lookups", "max_combiner", "modelzoo_wdl", "narrow_values", "optimizers",
            "policies", "save_while_training", "second_order", "semantics", "serving", "ssd",
            "training", "user_optimizers", "warm_start")),
        # These programs compare storages with each other.
        (_CONFORMANCE, ("per_table",), ("gpu",)),
        ("tests/on_gpu/", ("per_table",), ("moves",)),
        ("tests/on_gpu/", ("own",), ("whole_models",)),
        (_PACKAGE + "ops/", _BOTH, (
            "apply_ops", "checkpoint_ops", "delta_ops", "gather_ops", "handle_ops",
            "interaction_ops", "lookup_sparse_ops", "presence_ops", "row_ops", "session")),
        (_PACKAGE + "optimizers/", _BOTH, ("slot_view",)),
        (_PACKAGE + "variables/", _BOTH, ("creation", "options", "variable")),
        (_SOK, _BOTH, (
            "exchange/lookup", "exchange/low_frequency", "files/dump_load", "optimizers",
            "variables/dynamic_variable")),
    ) for stem in stems)
