# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import importlib
import sys
import types

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

from embedding_variable import tf_names

# Attributes that this package uses of modules that 2.x divides.
_USED = {
    "array_ops": ("concat", "stack", "unstack"),
    "control_flow_ops": ("Assert", "cond", "group", "while_loop"),
    "feature_column_v2": ("EmbeddingColumn", "FeatureColumn"),
    "ops": ("Graph", "IndexedSlices", "Tensor", "register_tensor_conversion_function"),
    "pywrap_tensorflow": ("NewCheckpointReader",),
}


class TfNamesTest(parameterized.TestCase):

  def test_every_name_is_a_module(self):
    names = sorted(list(tf_names._HOMES) + list(tf_names._PROTOS))  # pylint: disable=protected-access
    self.assertGreater(len(names), 50)
    for name in names:
      self.assertIsInstance(getattr(tf_names, name), types.ModuleType, name)

  @parameterized.parameters(sorted(_USED))
  def test_finds_what_2x_moved(self, name):
    for attribute in _USED[name]:
      self.assertTrue(hasattr(getattr(tf_names, name), attribute), attribute)
    self.assertFalse(hasattr(getattr(tf_names, name), "no_such_function"))

  def test_a_name_is_the_module_itself_where_nothing_was_moved(self):
    self.assertIs(tf_names.math_ops,
                  importlib.import_module("tensorflow.python.ops.math_ops"))

  def test_moved_attributes_are_those_of_their_module(self):
    self.assertIs(tf_names.ops.IndexedSlices, tf.IndexedSlices)
    self.assertIs(tf_names.ops.Tensor, tf.Tensor)

  def test_tf_has_the_functions_of_1x(self):
    self.assertIs(tf_names.tf.Session, tf.Session)
    self.assertTrue(hasattr(tf_names.tf.compat.v1, "placeholder"))

  def test_unknown_name(self):
    with self.assertRaisesRegex(AttributeError, "no_such_ops"):
      tf_names.no_such_ops  # pylint: disable=pointless-statement

  def test_find_takes_the_first_that_exists(self):
    self.assertEqual(tf_names.find("no_such.a", "json.no_such", "json.decoder").__name__,
                     "json.decoder")
    self.assertIsNone(tf_names.find("no_such.a"))

  def test_a_module_whose_import_fails_is_an_error(self):
    folder = self.create_tempdir()
    folder.create_file("imports_absent.py", "import no_such_module")
    sys.path.insert(0, folder.full_path)
    self.addCleanup(sys.path.remove, folder.full_path)
    with self.assertRaisesRegex(ImportError, "no_such_module"):
      tf_names.find("imports_absent", "json")

  def test_definition_of_an_op(self):
    self.assertEqual(tf_names.op_def("MatMul").name, "MatMul")
    with self.assertRaises(KeyError):
      tf_names.op_def("NoSuchOp")

  def test_keras(self):
    for module in tf_names.keras_optimizers("adam"):
      self.assertTrue(hasattr(module.Adam, "_distributed_apply"))
    self.assertIn(tf.keras.optimizers.Adam,
                  [module.Adam for module in tf_names.keras_optimizers("adam")])
    self.assertEmpty(tf_names.keras_modules("no.such.module"))


if __name__ == "__main__":
  absltest.main()
