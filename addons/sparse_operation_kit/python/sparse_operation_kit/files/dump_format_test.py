# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests SOK's file format byte by byte."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from sparse_operation_kit.files import dump_format


class DumpFormatTest(parameterized.TestCase):

  @parameterized.parameters(
      ("sok_dynamic_Variable_0:0", "sok_dynamic_Variable_0_0"),
      ("a/b-c.d:0", "a_b_c_d_0"), ("plain", "plain"))
  def test_table_names(self, name, expected):
    self.assertEqual(dump_format.table_name(name), expected)

  @parameterized.parameters(
      ("SGD", "SGD", ["SGD"]), ("AdagradOptimizer", "Adagrad", ["Adagrad"]),
      ("Adamax", "Adamax", ["Adamax", "Adam"]), ("AdamOptimizer", "Adam", ["Adam"]),
      ("LazyAdamOptimizer", "Adam", ["Adam"]), ("Ftrl", "Ftrl", ["Ftrl"]),
      ("RowWiseAdagradOptimizer", "RowWiseAdagrad", ["RowWiseAdagrad"]),
      ("Adadelta", "Adadelta", ["Adadelta"]),
      ("MomentumOptimizer", "Momentum", ["Momentum"]), ("Mine", "Mine", ["Mine"]),
      ("Optimizer", "Optimizer", ["Optimizer"]))
  def test_optimizer_names(self, class_name, name, to_load):
    self.assertEqual(dump_format.optimizer_name(class_name), name)
    self.assertEqual(dump_format.optimizer_names_to_load(class_name), to_load)

  def test_header(self):
    self.assertEqual(
        dump_format.header(dump_format.KEYS, np.int64),
        b" " * 256 + b"\0\0\0\0" + b" " * 32 + b"\0\0\0\1")
    self.assertEqual(
        dump_format.header(dump_format.SLOT, np.float32, "accumulator"),
        b" " * 256 + b"\0\0\0\2" + b" " * 21 + b"accumulator" + b"\0\0\0\5")
    with self.assertRaisesRegex(ValueError, "40 bytes"):
      dump_format.header(dump_format.SLOT, np.float32, "x" * 40)

  def test_dtype_indices(self):
    names = ["int32", "int64", "uint32", "uint64", "float16", "float32", "float64"]
    self.assertEqual([d.name for d in dump_format.DTYPES], names)

  def _write(self, kind=dump_format.ROWS, dtype=np.float32, arrays=(), slot=""):
    path = self.create_tempdir().full_path + "/t-weight"
    writer = dump_format.Writer(path, kind, dtype, slot)
    for array in arrays:
      writer.append(array)
    writer.close()
    self.assertFalse(os.path.exists(path))
    os.replace(path + ".part", path)
    return path

  def test_round_trip(self):
    path = self._write(dump_format.SLOT, np.float32, [[1., 2.], [[3.], [4.]]], "m")
    header = dump_format.read_header(path, dump_format.SLOT)
    self.assertEqual((header.slot, header.dtype, header.count), ("m", np.float32, 4))
    np.testing.assert_array_equal(
        dump_format.open_array(path, dump_format.SLOT), [1, 2, 3, 4])
    with open(path, "rb") as f:
      self.assertEqual(f.read()[296:], np.array([1, 2, 3, 4], "<f4").tobytes())

  def test_empty(self):
    path = self._write()
    self.assertEqual(os.path.getsize(path), 296)
    self.assertEqual(dump_format.open_array(path, dump_format.ROWS).shape, (0,))

  def test_discard_leaves_the_old_file(self):
    path = self._write(arrays=[[7.]])
    writer = dump_format.Writer(path, dump_format.ROWS, np.float32)
    writer.append([8.])
    writer.discard()
    np.testing.assert_array_equal(dump_format.open_array(path, dump_format.ROWS), [7])
    self.assertLen(os.listdir(os.path.dirname(path)), 1)

  def test_a_file_of_another_kind(self):
    path = self._write(arrays=[[1., 2.]])
    with self.assertRaisesRegex(ValueError, "file of type 1, expected type 0"):
      dump_format.open_array(path, dump_format.KEYS)
    with self.assertRaisesRegex(ValueError, "cannot be read"):
      dump_format.open_array(path + "x", dump_format.ROWS)
    with open(path, "ab") as f:
      f.write(b"x")
    with self.assertRaisesRegex(ValueError, "ends within a number"):
      dump_format.open_array(path, dump_format.ROWS)
    with open(path, "wb") as f:
      f.write(b" " * 100)
    with self.assertRaisesRegex(ValueError, "100 bytes"):
      dump_format.open_array(path, dump_format.ROWS)
    with open(path, "wb") as f:
      f.write(b" " * 256 + b"\0\0\0\1" + b" " * 32 + b"\0\0\0\7")
    with self.assertRaisesRegex(ValueError, "dtype index 7"):
      dump_format.open_array(path, dump_format.ROWS)
    with open(path, "wb") as f:
      f.write(b" " * 256 + b"\0\0\0\1" + b" " * 30 + b"a\xe9" + b"\0\0\0\0")
    with self.assertRaisesRegex(ValueError, path + ": the name of its slot, at byte 291, is"):
      dump_format.open_array(path, dump_format.ROWS)


if __name__ == "__main__":
  absltest.main()
