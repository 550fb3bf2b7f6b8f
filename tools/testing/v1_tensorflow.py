# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs scripts of TensorFlow 1.15 on 2.x: `import tensorflow` gives `tf.compat.v1`.

Tests and examples are written for TensorFlow 1.15. In an environment with 2.x this module
gives them `tensorflow.compat.v1` with 2.x's behavior disabled, as a user's script has it
after `import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()`. Modules of installed
packages and of this product get the module that they import. Tests of what 2.x lacks are
skipped (not_on_tensorflow_2.py).

`enable` must run before the first import of TensorFlow. tools/setup/other_tensorflow.sh
arranges that for every process of an environment in which EV_TEST_V1=1 is set.
"""

import builtins
import os
import sysconfig

import not_on_tensorflow_2

_SITE = tuple({sysconfig.get_path(name) + os.sep
               for name in ("purelib", "platlib", "stdlib")})

# Folders of this product's packages, which must run without this module.
_PRODUCT = tuple(os.path.join("python", name) + os.sep for name in (
    "embedding_variable", "sparse_operation_kit", "hierarchical_parameter_server",
    "hugectr"))

_import = builtins.__import__
_v1 = []


def enable():
  """Replaces the function that the import statement calls, and skips tests."""
  builtins.__import__ = _import_v1
  not_on_tensorflow_2.skip()


def _is_script(path):
  """Returns whether a module of this path gets TensorFlow 1.x's names."""
  if path.startswith(_SITE):
    return False
  is_test = path.endswith(("_test.py", "_utest.py", "testing.py"))
  return is_test or not any(folder in path for folder in _PRODUCT)


def _import_v1(name, globals=None, locals=None, fromlist=(), level=0):  # pylint: disable=redefined-builtin
  module = _import(name, globals, locals, fromlist, level)
  if name != "tensorflow" or level or not _is_script((globals or {}).get("__file__") or ""):
    return module
  if not _v1:
    _v1.append(module.compat.v1)
    _v1[0].disable_v2_behavior()
  return _v1[0]
