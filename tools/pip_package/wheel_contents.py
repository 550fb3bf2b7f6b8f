# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Collects the contents of a wheel from the packager's runfiles."""

import os
import re
import sys

# Code, which is left unchanged, or a link to a file: its text, then the path.
_CODE_OR_LINK = re.compile(
    r"^```.*?^```|`[^`]*`|\[((?:[^\[\]`]|`[^`]*`)+)\]\((?!\w+:)([^()\s#]*)[^()\s]*\)",
    re.DOTALL | re.MULTILINE)

_NOTE = "\n\nPaths on this page are those of files in the source tree.\n"


def runfiles(program):
  """Returns the root of a program's runfiles; program: its __file__."""
  # Symbolic links are not resolved, because they lead into the source tree.
  folder = os.path.dirname(os.path.abspath(program))
  return os.path.dirname(os.path.dirname(folder))


def read(path):
  """Returns a file's bytes."""
  with open(path, "rb") as f:
    return f.read()


def collect(program, root, packages, endings):
  """Returns {path in the wheel: bytes} of packages.

  Exits with a message if a package is missing.

  Args:
    program: string, for the message.
    root: the runfiles' root.
    packages: {package: its folder below the root}.
    endings: tuple of strings, of the files to take.
  """
  files = {}
  for package, place in packages.items():
    top = os.path.join(root, place)
    for folder, _, names in os.walk(top):
      for name in names:
        if name.endswith(endings):
          path = os.path.join(folder, name)
          files[package + path[len(top):].replace(os.sep, "/")] = read(path)
    if package + "/__init__.py" not in files:
      sys.exit("%s: no %s/__init__.py in the runfiles: run this program through "
               "bazel-bin." % (program, place))
  return files


def if_built(root, package, library):
  """Returns {path in the wheel: bytes} of a library, or {} if it is not in the runfiles.

  Args:
    root: the runfiles' root.
    package: its folder in the wheel.
    library: its path below the root.
  """
  path = os.path.join(root, library)
  if not os.path.exists(path):
    return {}
  return {"%s/%s" % (package, os.path.basename(library)): read(path)}


def plain_links(text, folder):
  """Returns a page of the source tree with its links to files replaced by text.

  A link becomes its text and the file's path, because a wheel contains no source tree and
  the tree has no public address.

  Args:
    text: Markdown.
    folder: the folder of the page in the source tree, "" for its root.
  """

  def plain(match):
    label, target = match.groups()
    if label is None:
      return match.group()
    path = os.path.normpath(os.path.join(folder, target)) if target else ""
    return label if path in ("", label) else "%s (%s)" % (label, path)

  changed = _CODE_OR_LINK.sub(plain, text)
  return text if changed == text else changed.rstrip("\n") + _NOTE


def description(root, page):
  """Returns the long description of a wheel, made from a page of the tree."""
  text = read(os.path.join(root, page)).decode("utf-8")
  return plain_links(text, os.path.dirname(page))


def version(root):
  """Returns the version of all distributions."""
  return read(os.path.join(root, "tools/pip_package/version.txt")).decode().strip()


def built_for(root, folder):
  """Returns the minor version of TensorFlow that an op library was compiled against.

  Args:
    root: the runfiles' root.
    folder: folder of the library, below the root.
  """
  return read(os.path.join(root, folder, "tensorflow_version.txt")).decode().strip()
