# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""@local_config_cuda: the CUDA compiler that ./configure found, and its runtime.

`config.bzl` defines whether there is one. If so, `:cudart` is the runtime as an archive,
which loads the driver at its first call. Without a compiler the repository is empty, and
//tools/build_defs:cuda.bzl leaves out CUDA code.
"""

_BUILD = '''
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "cudart",
    srcs = ["libcudart_static.a"],
    linkopts = ["-lpthread", "-ldl", "-lrt"],
)

cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/crt/**"]),
    includes = ["include"],
)
'''

_CONFIG = '''
"""Facts about the CUDA toolkit; empty strings where there is none."""

HAVE_CUDA = {have}
NVCC = "{nvcc}"
'''

def _top(repository_ctx, nvcc):
    """The toolkit's folder, as nvcc names it; the file may be a wrapper."""
    found = repository_ctx.execute([nvcc, "--dryrun", "-c", "none.cu"])
    for line in found.stderr.splitlines():
        if line.startswith("#$ TOP="):
            return line[len("#$ TOP="):].strip()
    return None

def _runtime(repository_ctx, top):
    for folder in ["lib64", "lib", "targets/x86_64-linux/lib"]:
        path = repository_ctx.path(top + "/" + folder + "/libcudart_static.a")
        if path.exists:
            return path
    return None

def _cuda_configure_impl(repository_ctx):
    nvcc = repository_ctx.os.environ.get("SOK_NVCC", "")
    top = _top(repository_ctx, nvcc) if nvcc else None
    runtime = _runtime(repository_ctx, top) if top else None
    headers = repository_ctx.path(top + "/include") if top else None
    have = bool(runtime) and headers.exists
    if have:
        repository_ctx.symlink(runtime, "libcudart_static.a")
        repository_ctx.symlink(headers, "include")
    elif nvcc:
        # buildifier: disable=print
        print("%s has no libcudart_static.a and headers beside it: CUDA code is left out" % nvcc)
    repository_ctx.file("BUILD", _BUILD if have else "")
    repository_ctx.file(
        "config.bzl",
        _CONFIG.format(have = have, nvcc = nvcc if have else ""),
    )

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    configure = True,
    environ = ["SOK_NVCC"],
    local = True,
)
