# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: pkg_resources reports a version of TensorFlow that contains "deeprec".

Why: some of DeepRec's scripts refuse to use its features with another version.
"""

import copy

from embedding_variable.deeprec import notices
from embedding_variable.integration import patching

_NAMES = ("tensorflow", "tensorflow-gpu")


def install(version):
  """Wraps `pkg_resources.get_distribution`, now or when the script imports it."""
  patching.after_import("pkg_resources", lambda module: _install(module, version))


def _install(pkg_resources, version):
  original = pkg_resources.get_distribution

  def get_distribution(dist):
    found = original(dist)
    if isinstance(dist, str) and found.key in _NAMES and "deeprec" not in found.version:
      notices.stands_in("version of TensorFlow",
                        "pkg_resources reports %s, installed is %s" %
                        (version, found.version))
      found = copy.copy(found)
      found._version = version  # pylint: disable=protected-access
    return found

  pkg_resources.get_distribution = get_distribution
