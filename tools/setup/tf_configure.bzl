# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""@local_config_tf: headers, library and ABI flag of the installed TensorFlow.

Targets: `:abi` (only the preprocessor definition, which is all that the engine
may use), `:headers` (for kernels/tf) and `:libtensorflow_framework.so.N`, where N
is TensorFlow's major version.
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
        "include/external/**",
        "include/google/protobuf/**",
        "include/ml_dtypes/**",
        "include/tensorflow/**/*.h",
        "include/third_party/**",
        "include/tsl/**",
        "include/unsupported/**",
        "include/xla/**",
    ]),
    includes = ["include"],
    deps = [":abi"],
)

exports_files(["{library}"])
'''

_CONFIG = '''
"""Facts about the installed TensorFlow."""

TF_VERSION = "{version}"
TF_MINOR_VERSION = "{minor}"
TF_CXX11_ABI = "{abi}"
TF_CXX_STANDARD = "{standard}"
TF_FRAMEWORK = "@local_config_tf//:{library}"
'''

def _tf_configure_impl(repository_ctx):
    include = configured(repository_ctx, "SOK_TF_INCLUDE")
    library = configured(repository_ctx, "SOK_TF_LIBRARY")
    version = configured(repository_ctx, "SOK_TF_VERSION")
    library_dir = configured(repository_ctx, "SOK_TF_LIBRARY_DIR")
    facts = {
        "abi": configured(repository_ctx, "SOK_TF_CXX11_ABI"),
        "library": library,
        "standard": configured(repository_ctx, "SOK_TF_CXX_STANDARD"),
        "minor": ".".join(version.split(".")[:2]),
        "version": version,
    }
    repository_ctx.symlink(include, "include")
    repository_ctx.symlink(library_dir + "/" + library, library)
    repository_ctx.file("BUILD", _BUILD.format(**facts))
    repository_ctx.file("config.bzl", _CONFIG.format(**facts))

tf_configure = repository_rule(
    implementation = _tf_configure_impl,
    configure = True,
    environ = [
        "SOK_TF_CXX11_ABI",
        "SOK_TF_CXX_STANDARD",
        "SOK_TF_INCLUDE",
        "SOK_TF_LIBRARY",
        "SOK_TF_LIBRARY_DIR",
        "SOK_TF_VERSION",
    ],
    local = True,
)
