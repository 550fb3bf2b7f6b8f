# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""@local_config_cuda: whether ./configure found a CUDA compiler, and where.

A recorded fact: no target is compiled by nvcc yet.
"""

_CONFIG = '''
"""Facts about the CUDA toolkit; empty strings where there is none."""

HAVE_CUDA = {have}
NVCC = "{nvcc}"
'''

def _cuda_configure_impl(repository_ctx):
    nvcc = repository_ctx.os.environ.get("SOK_NVCC", "")
    repository_ctx.file("BUILD", "")
    repository_ctx.file(
        "config.bzl",
        _CONFIG.format(have = bool(nvcc), nvcc = nvcc),
    )

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    configure = True,
    environ = ["SOK_NVCC"],
    local = True,
)
