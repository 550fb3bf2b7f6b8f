# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that run a program on several ranks."""

load("@local_config_tf//:config.bzl", "TF_MINOR_VERSION")
load("//tools/build_defs:cuda.bzl", "if_cuda")
load("//tools/build_defs:defs.bzl", "ev_py_test")

_PROGRAMS = "addons/sparse_operation_kit/python"

# Stand-ins for GPU and NCCL.
_TEST_DEVICE = "//tests/exchange_device"

# The library that the op library loads for rows in GPU memory.
_CUDA_LIBRARY = "//kernels/tf:libembedding_variable_cuda.so"

def utest_on_ranks(
        utest,
        ranks,
        exchange = "horovod",
        storage = "dram",
        size = "medium",
        folder = _PROGRAMS,
        utests = "//%s:utests" % _PROGRAMS,
        horovodrun = False,
        extensive = False,
        on_test_device = False,
        on_test_gpu = False):
    """Runs a utest of the SOK package once for each number of ranks.

    Args:
      utest: name of a program.
      ranks: list of ints.
      exchange: carrier of lookups.
      storage: storage of rows; a program must use distributed_model.py to support
        others than "dram".
      size: of each test.
      folder: the program's folder.
      utests: the library that it is in.
      horovodrun: whether horovodrun starts the ranks. Otherwise they are started in
        the same way, but some seconds faster.
      extensive: whether make test leaves it out.
      on_test_device: whether it runs with stand-ins for GPU and NCCL.
      on_test_gpu: whether TensorFlow has a stand-in for a GPU, too.
    """
    suffix = "" if exchange == "horovod" else "_by_" + exchange
    args = []
    data = []
    tags = ["cpu:2"] + (["extensive"] if extensive else [])
    if storage != "dram":
        suffix += "_in_" + storage
        args.append("--args=--storage=" + storage)
        if not on_test_device:
            tags.append("gpu")
            args.append("--needs_gpu")
            data += if_cuda([_CUDA_LIBRARY])
    if horovodrun:
        args.append("--horovodrun")
    if on_test_device:
        args.append("--through=tests/exchange_device/test_device.py")
        data.append(_TEST_DEVICE + ":libembedding_variable.so")
    if on_test_gpu:
        args.append("--through=tests/exchange_device/test_gpu.py")
        data.append(_TEST_DEVICE + ":on_gpu/libembedding_variable.so")
    for n in ranks:
        ev_py_test(
            name = "%s_on_%d_ranks%s" % (utest, n, suffix),
            size = size,
            srcs = ["utest_on_ranks.py"],
            args = [
                "--ranks=%d" % n,
                "--utest=%s/%s.py" % (folder, utest),
                "--exchange=" + exchange,
            ] + args,
            data = data,
            tags = tags,
            deps = [
                ":nvidia_driver",
                ":ranks",
                utests,
            ] + ([_TEST_DEVICE + ":utests"] if on_test_device or on_test_gpu else []),
        )

def eager_utest_on_ranks(utest, **kwargs):
    """Runs a program of //tests/eager on ranks. Defines nothing for TensorFlow 1.15.

    Args:
      utest: name of a program.
      **kwargs: as of utest_on_ranks.
    """
    if TF_MINOR_VERSION.startswith("1."):
        return
    utest_on_ranks(
        utest = utest,
        folder = "tests/eager",
        utests = "//tests/eager:ranks_utests",
        **kwargs
    )

def eager_ranks_test(name, **kwargs):
    """An ev_py_test of programs of //tests/eager. Defines nothing for TensorFlow 1.15.

    Args:
      name: stem_test; the source is stem_test.py.
      **kwargs: as of ev_py_test.
    """
    if TF_MINOR_VERSION.startswith("1."):
        return
    ev_py_test(
        name = name,
        srcs = [name + ".py"],
        deps = [
            ":ranks",
            "//tests/eager:ranks_utests",
        ],
        **kwargs
    )
