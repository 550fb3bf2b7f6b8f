# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that run a program on several ranks."""

load("//tools/build_defs:defs.bzl", "ev_py_test")

_PROGRAMS = "addons/sparse_operation_kit/python"

def utest_on_ranks(utest, ranks, exchange = "horovod", storage = "dram", size = "medium"):
    """Runs a utest of the SOK package once for each number of ranks.

    Args:
      utest: name of a program in //addons/sparse_operation_kit/python.
      ranks: list of ints.
      exchange: what carries lookups.
      storage: what holds rows; other than "dram" for programs on
        distributed_model.py.
      size: of each test.
    """
    suffix = "" if exchange == "horovod" else "_by_" + exchange
    args = []
    tags = ["cpu:2"]
    if storage != "dram":
        suffix += "_in_" + storage
        args.append("--args=--storage=" + storage)
        tags.append("gpu")
    for n in ranks:
        ev_py_test(
            name = "%s_on_%d_ranks%s" % (utest, n, suffix),
            size = size,
            srcs = ["utest_on_ranks.py"],
            args = [
                "--ranks=%d" % n,
                "--utest=%s/%s.py" % (_PROGRAMS, utest),
                "--exchange=" + exchange,
            ] + args,
            tags = tags,
            deps = [
                ":horovod_job",
                "//%s:utests" % _PROGRAMS,
            ],
        )
