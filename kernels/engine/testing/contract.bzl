# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a table that run with its rows in every kind of home.

The cases of a suite are compiled once (NAME_cases) and linked with each home. To
add a kind of home, add a line to _HOMES below and a case to storage_under_test.cc.
"""

load("//tools/build_defs:cuda.bzl", "gpu_test", "if_cuda")
load("//tools/build_defs:defs.bzl", "TEST_COPTS", "engine_library", "engine_test")

_TESTING = "//kernels/engine/testing:"

_STORAGE = _TESTING + "storage_under_test_"

# The stand-in for a GPU in CPU memory, with which every machine tests the code
# for GPUs. _GPU is the GPU itself.
_HOST_DEVICE = _TESTING + "host_device_rows"

_GPU = _TESTING + "gpu_steps"

# Suffix of the test's name -> storage of the table, whether rows are in the memory
# of the stand-in or the GPU, and the test's size.
_HOMES = {
    "": struct(storage = "dram", on_gpu = False, size = "small"),
    "device": struct(storage = "device", on_gpu = True, size = "small"),
    "hbm_dram": struct(storage = "hbm_dram", on_gpu = True, size = "medium"),
    "hbm_dram_ssd": struct(storage = "hbm_dram_ssd", on_gpu = True, size = "medium"),
    "ssd": struct(storage = "ssd", on_gpu = False, size = "medium"),
}

# Suffix of the test's name -> suffix of the same test on a GPU.
_ON_GPU = {
    "device": "gpu",
    "hbm_dram": "hbm_dram_gpu",
    "hbm_dram_ssd": "hbm_dram_ssd_gpu",
}

def _cases(name, srcs, deps):
    engine_library(
        name = name + "_cases",
        testonly = True,
        srcs = srcs,
        copts = TEST_COPTS,
        alwayslink = True,
        deps = deps + [
            _TESTING + "erased",
            _TESTING + "storage_under_test",
            _TESTING + "thread_pool",
            _TESTING + "unique_keys",
        ],
    )

def contract_suite(name, srcs, deps):
    """Defines tests of srcs: NAME_test, and NAME_<home>_test for every other home.

    Args:
      name: of the suite.
      srcs: GoogleTest sources that create tables by storage_under_test.h.
      deps: libraries that the sources include.
    """
    _cases(name, srcs, deps)
    for suffix, home in _HOMES.items():
        engine_test(
            name = name + ("_" + suffix if suffix else "") + "_test",
            size = home.size,
            srcs = [],
            deps = [":%s_cases" % name, _STORAGE + home.storage] +
                   ([_HOST_DEVICE] if home.on_gpu else []),
        )
        if home.on_gpu:
            gpu_test(
                name = "%s_%s_test" % (name, _ON_GPU[suffix]),
                size = "medium",
                srcs = [],
                deps = [":%s_cases" % name, _STORAGE + home.storage, _GPU],
            )

def stream_suite(name, srcs, deps):
    """Defines tests of srcs that use a framework's stream and GPU memory.

    NAME_test runs on the stand-in, NAME_gpu_test on a GPU. NAME_hbm_dram_test and
    NAME_hbm_dram_gpu_test run with most rows in CPU memory.

    Args:
      name: of the suite.
      srcs: GoogleTest sources that use stream_under_test.h.
      deps: libraries that the sources include.
    """
    _cases(name, srcs, deps + [_TESTING + "stream_under_test"])
    for storage, infix in [("device", ""), ("hbm_dram", "_hbm_dram")]:
        engine_test(
            name = name + infix + "_test",
            srcs = [],
            deps = [
                ":%s_cases" % name,
                _HOST_DEVICE,
                _STORAGE + storage,
                _TESTING + "stream_under_test_host",
            ],
        )
        gpu_test(
            name = name + infix + "_gpu_test",
            srcs = [],
            deps = [
                ":%s_cases" % name,
                _GPU,
                _STORAGE + storage,
            ] + if_cuda([_TESTING + "stream_under_test_gpu"]),
        )
