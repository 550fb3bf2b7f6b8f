# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The version of this distribution, and a check that no other one owns its packages."""

import os
import re
import sys

# pip's name of the distribution that contains `embedding_variable` and
# `sparse_operation_kit`.
NAME = "sok-stock-tf"

# Distributions that also install a package `sparse_operation_kit`: NVIDIA's, and wheels
# of this project under its first name.
_OTHERS = ("sparse-operation-kit", "merlin-sok")

# Bazel writes the version into this file of the source tree.
_FILE = os.path.join("tools", "pip_package", "version.txt")

# NAME-VERSION.dist-info, or NAME-VERSION-py3.7[-PLATFORM].egg-info.
_INFO = re.compile(r"(.+?)-(\d[^-]*)(?:-py\d.*)?\.(?:dist|egg)-info$")


def _site():
  """Returns the folder that contains the package: site-packages for an installed wheel."""
  return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _installed(folder):
  """Returns the sorted (name, version) pairs of the distributions in a folder."""
  try:
    found = [_INFO.match(entry) for entry in os.listdir(folder)]
  except OSError:
    return []
  return sorted((re.sub(r"[-_.]+", "-", info.group(1)).lower(), info.group(2))
                for info in found if info)


def version():
  """Returns the version, such as "0.1.0"; "unknown" in a source tree."""
  for name, number in _installed(_site()):
    if name == NAME:
      return number
  path = os.path.join(os.path.dirname(_site()), _FILE)
  if not os.path.exists(path):
    return "unknown"
  with open(path) as f:
    return f.read().strip()


def check_alone():
  """Checks that no other distribution provides the package `sparse_operation_kit`.

  Searches the folders of sys.path up to the one that contains this package: a package
  in a later folder is never imported.

  Raises:
    ImportError: another distribution does. pip does not detect that two distributions
      own the same files: the one installed last has overwritten files of the other, and
      uninstalling either removes files of both.
  """
  site = _site()
  folders = [os.path.abspath(folder or os.curdir) for folder in sys.path]
  # An environment may be reached through a link, hence realpath.
  real = [os.path.realpath(folder) for folder in folders]
  if os.path.realpath(site) in real:
    folders = folders[:real.index(os.path.realpath(site))]
  for folder in folders + [site]:
    others = [pair for pair in _installed(folder) if pair[0] in _OTHERS]
    if others:
      raise ImportError(
          "%s and %s both provide the Python package sparse_operation_kit, and one has "
          "overwritten files of the other. Uninstall both, then install the wheel "
          "again:\n"
          "  pip uninstall -y %s %s\n"
          "  pip install sok_stock_tf-*.whl\n"
          "(found %s in %s; distributions of that name are NVIDIA's SparseOperationKit, or "
          "a wheel of this project from before it was called %s)" %
          (NAME, " and ".join(name for name, _ in others),
           " ".join(name for name, _ in others), NAME,
           ", ".join("%s %s" % pair for pair in others), folder, NAME))
