# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the imports of Python modules, and where stock TensorFlow is patched."""

import ast
import functools

from absl.testing import absltest
from absl.testing import parameterized

import tree

_EV = "python/embedding_variable/"
_INTEGRATION = _EV + "integration/"
# Patches that only the launcher of DeepRec's scripts, or the use of a stand-in, installs.
_DEEPREC_PATCHES = _EV + "deeprec/patches/"
# Patches for tables of eager execution and for Keras.
_EAGER_PATCHES = _EV + "eager/patches/"
_SOK = "addons/sparse_operation_kit/"
_HUGECTR = "addons/hugectr/"
# Predicts with tables that the parameter server holds; imports its package late.
_INFERENCE = _HUGECTR + "python/hugectr/inference/"
_SERVING = "addons/serving/"
_LOADER = _EV + "_lib.py"

# The module from which this product's packages import TensorFlow's.
_TF_NAMES = "embedding_variable.tf_names"

_HPS = "addons/hierarchical_parameter_server/"
_HPS_LOADER = _HPS + "python/hierarchical_parameter_server/_lib.py"

# The modules that may import pyarrow. They import pyarrow_hotfix too, since otherwise a
# Parquet file could run code.
_ARROW = (_HUGECTR + "python/hugectr/data/arrow.py", _EV + "tools/arrow.py")

# The module that gives files and folders of users their names, durably. The other two
# replace a link and a wheel, which need not survive a crash of the machine.
_DURABLE = _EV + "checkpoint_format/durable.py"
_RENAMES = (_DURABLE, _EV + "gpu/links.py", "tools/pip_package/build_wheel.py")

# Functions of pandas that read files by pyarrow.
_PANDAS_READERS = ("read_feather", "read_orc", "read_parquet")

# The module whose own function has such a name.
_OWN_READER = "parquet_dataset"

# Internal modules of packages that an addon may not import.
_INNER = ("embedding_variable.", "sparse_operation_kit.", "tensorflow.python")

# Code outside the product may import all of it.
_OUTSIDE = ("tests/", "examples/", "benchmarks/", "docs/")


def is_test(path):
  return path.endswith(("_test.py", "_utest.py")) or "/testing/" in path


# Each rule needs the nodes of a module, and walking takes most of the time.
@functools.lru_cache(maxsize=1)
def _nodes(module):
  return list(ast.walk(module))


def imported(module):
  """Yields the dotted names that a parsed module imports, at any depth."""
  for node in _nodes(module):
    if isinstance(node, ast.Import):
      for alias in node.names:
        yield alias.name
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
      yield node.module
      for alias in node.names:
        yield "%s.%s" % (node.module, alias.name)


def _is(name, package):
  return name == package or name.startswith(package + ".")


def _tensorflow_names(module):
  """Returns the local names that are bound to objects of TensorFlow."""
  names = set()
  for node in _nodes(module):
    if isinstance(node, ast.Import):
      for alias in node.names:
        if _is(alias.name, "tensorflow"):
          names.add(alias.asname or alias.name.split(".")[0])
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
      if _is(node.module, "tensorflow") or node.module == _TF_NAMES:
        names.update(alias.asname or alias.name for alias in node.names)
  return names


def _base_name(node):
  while isinstance(node, ast.Attribute):
    node = node.value
  return node.id if isinstance(node, ast.Name) else None


def _targets(node):
  if isinstance(node, ast.Assign):
    return node.targets
  if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
    return [node.target]
  if isinstance(node, ast.Delete):
    return node.targets
  return []


def patches(module):
  """Returns the line numbers where an attribute of TensorFlow is replaced."""
  names = _tensorflow_names(module)
  lines = []
  for node in _nodes(module):
    for target in _targets(node):
      if isinstance(target, ast.Attribute) and _base_name(target) in names:
        lines.append(node.lineno)
      if (isinstance(target, ast.Subscript) and
          ast.dump(target.value).find("attr='modules'") >= 0):
        key = target.slice.value if isinstance(target.slice, ast.Index) else None
        if isinstance(key, ast.Str) and _is(key.s, "tensorflow"):
          lines.append(node.lineno)
    if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and
        node.func.id in ("setattr", "delattr") and node.args and
        _base_name(node.args[0]) in names):
      lines.append(node.lineno)
  return lines


def _imports_of(module, package):
  """Returns the line numbers where a package or one of its modules is imported."""
  return [node.lineno for node in _nodes(module)
          if isinstance(node, (ast.Import, ast.ImportFrom)) and
          any(_is(name, package) for name in imported(node))]


def _outside_functions(module):
  """Returns the import statements of a module that run when it is imported."""
  found, left = [], list(module.body)
  while left:
    node = left.pop()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
      continue
    left += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
      found.append(node)
  return found


def unsafe_readers(path, module):
  """Returns a line for each way to read Parquet files without pyarrow_hotfix."""
  found, lines = [], _imports_of(module, "pyarrow")
  if path in _ARROW:
    safe = _imports_of(module, "pyarrow_hotfix")
    if not safe or not lines or min(safe) > min(lines):
      found.append("%s: imports pyarrow_hotfix before pyarrow" % path)
  else:
    found += ["%s:%d: imports pyarrow, which runs code of a crafted file: take it from %s" %
              (path, line, " or ".join(_ARROW)) for line in lines]
  return found + [
      "%s:%d: %s reads by a pyarrow that runs code of a crafted file: take pyarrow from %s" %
      (path, node.lineno, node.attr, " or ".join(_ARROW)) for node in _nodes(module)
      if isinstance(node, ast.Attribute) and node.attr in _PANDAS_READERS and
      _base_name(node) != _OWN_READER]


def renames(path, module):
  """Returns a line for each file that is renamed or synced without `_DURABLE`."""
  if path in _RENAMES or is_test(path) or path.startswith(_OUTSIDE) or "/benchmark/" in path:
    return []
  return ["%s:%d: os.%s: replace files by %s" % (path, node.lineno, node.attr, _DURABLE)
          for node in _nodes(module)
          if isinstance(node, ast.Attribute) and _base_name(node) == "os" and
          node.attr in ("fsync", "rename", "renames", "replace")]


def violations(path, text):
  """Returns a line for each rule that a module breaks."""
  module = ast.parse(text, path)
  found = []
  found += unsafe_readers(path, module) + renames(path, module)
  names = set(imported(module))
  if any(_is(name, "tensorflow_core") for name in names):
    found.append("%s: imports tensorflow_core, a second copy of TensorFlow's modules: "
                 "import tensorflow.python..." % path)
  if (any(_is(name, "sparse_operation_kit") for name in names) and
      not (path.startswith(_HPS) and (is_test(path) or "/example/" in path)) and
      not path.startswith((_SOK, _HUGECTR) + _OUTSIDE)):
    found.append("%s: only %s, %s and programs may import sparse_operation_kit" %
                 (path, _SOK, _HUGECTR))
  if (any(_is(name, "hugectr") for name in names) and
      not path.startswith((_HUGECTR,) + _OUTSIDE)):
    found.append("%s: only %s and programs may import hugectr" % (path, _HUGECTR))
  if (any(_is(name, "embedding_variable_serving") for name in names) and
      not path.startswith((_SERVING,) + _OUTSIDE)):
    found.append("%s: only %s and programs may import embedding_variable_serving" %
                 (path, _SERVING))
  if path.startswith(_SERVING):
    found += ["%s: imports %s: it uses the packages' public names only" % (path, name)
              for name in sorted(names) if name.startswith(_INNER)]
  if path.startswith(_HUGECTR):
    found += ["%s: imports %s: it uses the packages' public names only" % (path, name)
              for name in sorted(names) if name.startswith(_INNER)]
  if path.startswith(_HPS) and not path.startswith(_HPS + "example/"):
    # The HPS wheel is installed without ours: it needs the op library and TensorFlow.
    found += ["%s: imports %s: the package depends on TensorFlow and numpy alone" %
              (path, name) for name in sorted(names)
              if _is(name, "embedding_variable") and not is_test(path)]
  if (any(_is(name, "hierarchical_parameter_server") for name in names) and
      not path.startswith((_HPS, _INFERENCE) + _OUTSIDE)):
    found.append("%s: only %s, %s and programs may import hierarchical_parameter_server" %
                 (path, _HPS, _INFERENCE))
  if path.startswith(_INFERENCE) and not is_test(path):
    # The trainer's wheel is installed without the server's.
    found += ["%s:%d: imports hierarchical_parameter_server when the module is loaded: "
              "import it in the function that needs it" % (path, node.lineno)
              for node in _outside_functions(module)
              if any(_is(name, "hierarchical_parameter_server") for name in imported(node))]
  if path.startswith((_EV, _SOK, _HUGECTR, _HPS, _SERVING)) and not is_test(path):
    if not path.startswith((_INTEGRATION, _DEEPREC_PATCHES, _EAGER_PATCHES)):
      found += [
          "%s:%d: patches TensorFlow: belongs into %s" % (path, line, _INTEGRATION)
          for line in patches(module)
      ]
    loads = [
        node for node in _nodes(module)
        if isinstance(node, ast.Attribute) and node.attr == "load_op_library"
    ]
    if loads and path not in (_LOADER, _HPS_LOADER):
      found.append("%s: only %s loads the library" % (path, _LOADER))
  return found


class PythonArrowsTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    found = []
    paths = tree.files(".py")
    self.assertGreater(len(paths), 20)
    for path in paths:
      found += violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  @parameterized.parameters(
      "import tensorflow_core.python.ops.math_ops",
      "from tensorflow_core.python.ops import math_ops",
      "def f():\n  from tensorflow_core import estimator",
      "import sparse_operation_kit as sok",
      "from sparse_operation_kit import lookup",
      "import tensorflow as tf\ntf.gather = None",
      "import tensorflow as tf\nsetattr(tf, 'gather', None)",
      "from tensorflow.python.ops import math_ops\nmath_ops.add = None",
      "from tensorflow.python.training import optimizer as o\no.Optimizer.f = None",
      "import sys\nsys.modules['tensorflow.python.ops.kv'] = None",
      "from embedding_variable.tf_names import math_ops\nmath_ops.add = None",
      "import tensorflow as tf\ntf.load_op_library('a.so')",
      "import os\nos.replace('a.part', 'a')",
  )
  def test_refuses(self, text):
    self.assertLen(violations(_EV + "lookup/a.py", text), 1)

  @parameterized.parameters(
      (_HUGECTR + "a.py", "import sparse_operation_kit.rows"),
      (_HUGECTR + "a.py", "from embedding_variable.ops import row_ops"),
      (_HUGECTR + "a.py", "import tensorflow as tf\ntf.gather = None"),
      (_SOK + "python/a.py", "import hugectr"),
      (_HUGECTR + "python/hugectr/training/a.py",
       "def f():\n  import hierarchical_parameter_server"),
      (_INFERENCE + "a.py", "import hierarchical_parameter_server as hps"),
      (_INFERENCE + "a.py", "try:\n  from hierarchical_parameter_server import start\n"
       "except ImportError:\n  pass"),
      (_EV + "a.py", "import hierarchical_parameter_server"),
      ("tools/a.py", "from hugectr import data"),
      (_EV + "a.py", "import embedding_variable_serving.main"),
      (_SERVING + "a.py", "from embedding_variable.tools import main"),
      (_SERVING + "a.py", "import tensorflow as tf\ntf.load_op_library('a.so')"),
      ("tests/a_test.py", "import pyarrow as pa"),
      ("examples/a.py", "def f():\n  from pyarrow import parquet"),
      ("benchmarks/a.py", "import pyarrow_hotfix\nimport pyarrow.parquet as pq"),
      ("examples/a.py", "import pandas as pd\npd.read_parquet('a')"),
      (_ARROW[0], "import pyarrow\nimport pyarrow_hotfix"),
      (_ARROW[1], "import pyarrow.parquet"),
  )
  def test_refuses_of_an_addon(self, path, text):
    self.assertNotEmpty(violations(path, text))

  @parameterized.parameters(
      (_HUGECTR + "python/a.py", "import sparse_operation_kit as sok"),
      (_HUGECTR + "python/a.py", "from hugectr.data import reader"),
      (_INFERENCE + "a.py", "def f():\n  import hierarchical_parameter_server as hps"),
      (_INFERENCE + "a_test.py", "import hierarchical_parameter_server as hps"),
      (_INTEGRATION + "a.py", "import tensorflow as tf\ntf.gather = None"),
      (_DEEPREC_PATCHES + "a.py", "import tensorflow as tf\ntf.gather = None"),
      (_EAGER_PATCHES + "a.py", "import tensorflow as tf\ntf.gather = None"),
      (_LOADER, "import tensorflow as tf\ntf.load_op_library('a.so')"),
      (_SOK + "python/a.py", "import sparse_operation_kit"),
      ("examples/a.py", "import sparse_operation_kit"),
      ("examples/a.py", "from hugectr.data import arrow\narrow.pq.read_table('a')"),
      (_ARROW[0], "import pyarrow_hotfix\nimport pyarrow as pa"),
      (_ARROW[1], "def f():\n  import pyarrow_hotfix\n  import pyarrow.parquet"),
      (_EV + "a.py", "import sys\nsys.modules[__name__ + '.b'] = 1"),
      (_EV + "a.py", "import tensorflow as tf\nx = tf.gather\nx.y = 1"),
      (_EV + "a_test.py", "import tensorflow as tf\ntf.gather = None"),
  )
  def test_allows(self, path, text):
    self.assertEmpty(violations(path, text))


if __name__ == "__main__":
  absltest.main()
