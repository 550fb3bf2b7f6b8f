# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""@local_config_tf: headers, library and ABI flag of the installed TensorFlow.

Targets: `:abi` (only the preprocessor definition, which is all that the engine
may use), `:headers` (for kernels/tf) and `:libtensorflow_framework.so.1`.
"""

load("//tools/setup:python_configure.bzl", "configured")

_BUILD = '''
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "abi",
    defines = ["_GLIBCXX_USE_CXX11_ABI={abi}"],
)

cc_library(
    name = "headers",
    hdrs = glob([
        "include/Eigen/**",
        "include/absl/**/*.h",
        "include/absl/**/*.inc",
        "include/google/protobuf/**",
        "include/tensorflow/**/*.h",
        "include/third_party/**",
        "include/unsupported/**",
    ]),
    includes = ["include"],
    deps = [":abi"],
)

exports_files(["{library}"])
'''

_CONFIG = '''
"""Facts about the installed TensorFlow."""

TF_VERSION = "{version}"
TF_CXX11_ABI = "{abi}"
TF_FRAMEWORK = "@local_config_tf//:{library}"
'''

_LIBRARY = "libtensorflow_framework.so.1"

def _tf_configure_impl(repository_ctx):
    include = configured(repository_ctx, "SOK_TF_INCLUDE")
    library_dir = configured(repository_ctx, "SOK_TF_LIBRARY_DIR")
    facts = {
        "abi": configured(repository_ctx, "SOK_TF_CXX11_ABI"),
        "library": _LIBRARY,
        "version": configured(repository_ctx, "SOK_TF_VERSION"),
    }
    repository_ctx.symlink(include, "include")
    repository_ctx.symlink(library_dir + "/" + _LIBRARY, _LIBRARY)
    repository_ctx.file("BUILD", _BUILD.format(**facts))
    repository_ctx.file("config.bzl", _CONFIG.format(**facts))

tf_configure = repository_rule(
    implementation = _tf_configure_impl,
    configure = True,
    environ = [
        "SOK_TF_CXX11_ABI",
        "SOK_TF_INCLUDE",
        "SOK_TF_LIBRARY_DIR",
        "SOK_TF_VERSION",
    ],
    local = True,
)
