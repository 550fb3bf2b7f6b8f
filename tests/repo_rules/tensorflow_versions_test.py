# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that few files know the versions of TensorFlow.

In Python these are integration/, eager/patches/ and tf_names.py, in C++
kernels/tf/bridge/compat.h. All other code is the same for TensorFlow 1.15 and 2.x.
"""

import ast
import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_EV = "python/embedding_variable/"
_NAMES = _EV + "tf_names.py"
_SOK = "addons/sparse_operation_kit/python/sparse_operation_kit/"
_PYTHON = ("python/", "addons/", "examples/", "benchmarks/")

# gpu/ is about one build of TensorFlow 1.15; examples/deeprec has the imports that scripts
# for DeepRec have.
_KNOWS = (_EV + "integration/", _EV + "deeprec/patches/", _EV + "eager/patches/",
          _EV + "gpu/", _NAMES, "examples/deeprec/")

# Modules with the same name in all versions. This product adds DeepRec's; one is for tools
# that measure.
_EVERYWHERE = ("tensorflow.core.framework.embedding", "tensorflow.python.client.timeline",
               "tensorflow.python.ops.kv_variable_ops")

# contrib exists in 1.15 only; the module is imported when contrib is.
_CONTRIB = _EV + "feature_column/contrib_columns.py"

# Wheels without tf_names.py have the package too.
_FORMAT = _EV + "checkpoint_format/"

# They refuse another version, or return it.
_READS_VERSION = (_EV + "_lib.py", _SOK + "version.py",
                  "addons/hierarchical_parameter_server/python/"
                  "hierarchical_parameter_server/_lib.py")

_COMPAT = "kernels/tf/bridge/compat.h"
_CPP = re.compile(r"^(kernels/tf|addons/\w+/tf)/")

# Pattern -> what to write instead.
_CPP_WORDS = (
    (re.compile(r"(?<!ev::)\bStatus::OK\(\)"), "Status()"),
    (re.compile(r"\berror_message\(\)"), "MessageOf(status)"),
    (re.compile(r"(?<!EV_)\b(?:TF_)?(?:GUARDED_BY|EXCLUSIVE_LOCKS_REQUIRED)\("),
     "EV_GUARDED_BY, EV_EXCLUSIVE_LOCKS_REQUIRED"),
    (re.compile(r"\b(?:scalar|flat|vec|matrix)<(?:std|tensorflow)::string>"), "TfString"),
    (re.compile(r"\btensorflow::string\b"), "std::string"),
    (re.compile(r"\bMakeTypeIndex\b"), "TypeIndexOf"),
    (re.compile(r"\bGpuStreamMemberHack\b"), "NativeStream"),
    (re.compile(r"blocking_counter\.h"), _COMPAT),
    (re.compile(r"__has_include|\bTF_(?:MAJOR|MINOR)_VERSION\b|\bTF_VERSION_STRING\b"),
     _COMPAT),
)


def _is_test(path):
  return path.endswith(("_test.py", "_utest.py")) or path.rsplit("/", 1)[-1] in (
      "testing.py", "distributed_model.py")


def _imports(module):
  """Yields (line number, dotted name) of what a parsed module imports."""
  for node in ast.walk(module):
    if isinstance(node, ast.Import):
      for alias in node.names:
        yield node.lineno, alias.name
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
      for alias in node.names:
        yield node.lineno, "%s.%s" % (node.module, alias.name)


def python_violations(path, text):
  """Returns a line for each rule that a Python file breaks."""
  if not path.startswith(_PYTHON) or path.startswith(_KNOWS):
    return []
  module = ast.parse(text, path)
  found = []
  for line, name in _imports(module):
    if name.startswith(("tensorflow.python", "tensorflow.core")):
      if not name.startswith(_EVERYWHERE):
        found.append("%s:%d: imports %s: take it from %s" % (path, line, name, _NAMES))
    elif name.split(".")[0] == "tensorflow" and path.startswith((_EV, _SOK)):
      if not _is_test(path) and path != _CONTRIB and not path.startswith(_FORMAT):
        found.append("%s:%d: imports %s: import tf from %s" % (path, line, name, _NAMES))
  if (path.startswith(("python/", "addons/")) and not _is_test(path) and
      path not in _READS_VERSION):
    found += [
        "%s:%d: reads TensorFlow's version: ask for the name that differs, in %s" %
        (path, node.lineno, _NAMES) for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and
        node.value.id in ("tf", "tensorflow") and
        node.attr in ("__version__", "VERSION", "version")]
  return found


def cpp_violations(path, text):
  """Returns a line for each rule that a C++ file breaks."""
  if not _CPP.match(path) or path == _COMPAT:
    return []
  return ["%s:%d: %s differs between versions of TensorFlow: use %s" %
          (path, number, match.group(), instead)
          for number, line in enumerate(text.splitlines(), 1)
          for pattern, instead in _CPP_WORDS for match in [pattern.search(line)] if match]


class TensorflowVersionsTest(parameterized.TestCase):

  def test_horovod_is_compiled_without_pips_cache(self):
    # pip's cache has one wheel of Horovod for a Python, whichever TensorFlow it is for.
    for path in ("tools/setup/venv.sh", "tools/setup/horovod_for.sh"):
      text = tree.read(path).replace("\\\n", "")
      commands = re.findall(r"pip wheel .*", text)
      self.assertLen(commands, 1, path)
      self.assertIn(" --no-cache-dir ", commands[0], path)

  def test_the_tree_obeys(self):
    python, cpp = tree.files(".py"), tree.files(".cc", ".h")
    self.assertGreater(len([p for p in python if p.startswith(_PYTHON)]), 200)
    self.assertGreater(len([p for p in cpp if _CPP.match(p)]), 50)
    found = []
    for path in python:
      found += python_violations(path, tree.read(path))
    for path in cpp:
      found += cpp_violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  @parameterized.parameters(
      (_EV + "a.py", "from tensorflow.python.framework import ops"),
      (_EV + "a_test.py", "from tensorflow.python.framework import ops"),
      (_EV + "a.py", "def f():\n  import tensorflow.python.ops.math_ops"),
      (_SOK + "a.py", "from tensorflow.core.framework import attr_value_pb2"),
      (_SOK + "a.py", "import tensorflow as tf"),
      (_EV + "a.py", "import tensorflow.compat.v1 as tf"),
      (_EV + "a.py", "if tf.__version__ < '2': pass"),
      ("addons/hugectr/python/hugectr/a.py", "x = tf.version.VERSION"),
      ("examples/a.py", "from tensorflow.python.framework import ops"),
  )
  def test_refuses_python(self, path, text):
    self.assertLen(python_violations(path, text), 1)

  @parameterized.parameters(
      (_NAMES, "import tensorflow.python.ops.math_ops"),
      (_EV + "integration/a.py", "from tensorflow.python.framework import ops"),
      (_EV + "a.py", "from embedding_variable.tf_names import ops"),
      (_EV + "checkpoint_format/a.py", "import tensorflow as tf"),
      (_EV + "a_test.py", "import tensorflow as tf\nprint(tf.__version__)"),
      (_EV + "a.py", "from tensorflow.core.framework.embedding import config_pb2"),
      ("tests/conformance/a_test.py", "from tensorflow.python.framework import ops"),
  )
  def test_allows_python(self, path, text):
    self.assertEmpty(python_violations(path, text))

  @parameterized.parameters(
      "return Status::OK();", "return tensorflow::Status::OK();",
      "x = status.error_message();", "int a_ GUARDED_BY(mutex_);",
      "int a_ TF_GUARDED_BY(mutex_);", "output->scalar<std::string>()() = x;",
      "tensorflow::string x;", "#if __has_include(\"a.h\")", "MakeTypeIndex<T>()",
      "#if TF_MAJOR_VERSION == 2",
      "#include \"tensorflow/core/lib/core/blocking_counter.h\"")
  def test_refuses_cpp(self, text):
    self.assertLen(cpp_violations("kernels/tf/ops/a.cc", text), 1)
    self.assertLen(cpp_violations("addons/sparse_operation_kit/tf/a.h", text), 1)
    self.assertEmpty(cpp_violations(_COMPAT, text))

  @parameterized.parameters(
      "return Status();", "return ev::Status::OK();", "int a_ EV_GUARDED_BY(mutex_);",
      "output->scalar<embedding_variable::TfString>()() = x;")
  def test_allows_cpp(self, text):
    self.assertEmpty(cpp_violations("kernels/tf/ops/a.cc", text))


if __name__ == "__main__":
  absltest.main()
