# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""@local_config_python: the interpreter that ./configure chose."""

_UNCONFIGURED = "No interpreter is configured: run ./configure (or make setup) first."

_BUILD = '''
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

py_runtime(
    name = "py3_runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    stub_shebang = "#!{python}",
)

py_runtime_pair(
    name = "py_runtime_pair",
    py3_runtime = ":py3_runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":py_runtime_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

# Tests depend on this file, so that they run again when a package changes.
exports_files(
    ["installed_packages.txt"],
    visibility = ["//visibility:public"],
)
'''

_LIST_PACKAGES = """
try:
  from importlib import metadata
  found = [(d.metadata["Name"], d.version) for d in metadata.distributions()]
except ImportError:  # Python 3.7
  import pkg_resources
  found = [(d.project_name, d.version) for d in pkg_resources.working_set]
print("\\n".join(sorted("%s==%s" % package for package in found)))
"""

def configured(repository_ctx, name):
    """Returns a value that ./configure wrote into .bazelrc.user."""
    value = repository_ctx.os.environ.get(name, "")
    if not value:
        fail(_UNCONFIGURED)
    return value

def _python_configure_impl(repository_ctx):
    python = configured(repository_ctx, "SOK_PYTHON")
    listed = repository_ctx.execute([python, "-c", _LIST_PACKAGES])
    if listed.return_code != 0:
        fail("%s cannot list its packages: %s" % (python, listed.stderr))
    repository_ctx.file("installed_packages.txt", listed.stdout)
    repository_ctx.file("BUILD", _BUILD.format(python = python))

python_configure = repository_rule(
    implementation = _python_configure_impl,
    configure = True,
    environ = [
        "SOK_PYTHON",
        "SOK_PACKAGES",
    ],
    local = True,
)
