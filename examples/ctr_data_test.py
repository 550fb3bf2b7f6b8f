# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's data: Parquet and text give the same samples, and errors name mistakes."""

import os
import sys
import tempfile
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.tools import arrow
import criteo
import criteo_input
import criteo_parquet
import ctr_data

_LINES = 70

pa = arrow.load()


def _columns(lines):
  """Returns {name: list of texts} for lines of Criteo's text."""
  fields = zip(*[line.rstrip("\n").split("\t") for line in lines])
  names = ["label"] + criteo_parquet.NUMERIC + criteo_parquet.CATEGORICAL
  return dict(zip(names, map(list, fields)))


class CtrDataTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = tempfile.mkdtemp()
    cls.text = os.path.join(cls.folder, "train.txt")
    criteo.write(cls.text, _LINES, criteo.PlantedModel(1), seed=2)
    with open(cls.text) as f:
      cls.lines = f.readlines()
    cls.columns = _columns(cls.lines)

  def arrays(self):
    """Returns {name: pyarrow.Array} of the text's columns, with nulls for empty
    fields."""
    found = {"label": pa.array([int(x) for x in self.columns["label"]])}
    for name in criteo_parquet.NUMERIC:
      found[name] = pa.array([int(x) if x else None for x in self.columns[name]])
    for name in criteo_parquet.CATEGORICAL:
      found[name] = pa.array([x or None for x in self.columns[name]])
    return found

  def parquet(self, arrays, path=None):
    path = path or os.path.join(self.create_tempdir().full_path, "a.parquet")
    pa.parquet.write_table(pa.table(arrays), path)
    return path

  def file(self, text):
    return self.create_tempdir().create_file("data.txt", text).full_path

  def read(self, path, **kwargs):
    """Returns all samples of a path as one batch."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      element = tf.compat.v1.data.make_one_shot_iterator(
          criteo_input.dataset(path, 16, **kwargs)).get_next()
      found = []
      while True:
        try:
          found.append(session.run(element))
        except tf.errors.OutOfRangeError:
          break
    numeric, ids, label = zip(*found)
    return np.concatenate(numeric), np.concatenate(ids, axis=1), np.concatenate(label)

  def error(self, path, **kwargs):
    with self.assertRaises(criteo.DataError) as raised:
      ctr_data.check(path, **kwargs)
    self.assertStartsWith(str(raised.exception), os.path.dirname(path))
    return str(raised.exception)

  @parameterized.parameters("string", "dictionary", "binary")
  def test_parquet_equals_text(self, kind):
    arrays = self.arrays()
    for name in criteo_parquet.CATEGORICAL:
      arrays[name] = (arrays[name].dictionary_encode() if kind == "dictionary" else
                      arrays[name].cast(kind))
    arrays["I3"] = arrays["I3"].cast("float64")
    arrays["another"] = arrays["label"]
    path = self.parquet(arrays)
    for kwargs in ({}, {"skip": 30}, {"take": 33}):
      for got, expected in zip(self.read(path, **kwargs), self.read(self.text, **kwargs)):
        np.testing.assert_array_equal(got, expected)

  def test_a_folder_of_parquet_files(self):
    folder = self.create_tempdir().full_path
    arrays = self.arrays()
    for i, rows in enumerate([(0, 30), (30, 0), (30, 40)]):
      self.parquet({n: a.slice(*rows) for n, a in arrays.items()},
                   os.path.join(folder, "part-%d.parquet" % i))
    self.assertEqual(ctr_data.samples(folder), _LINES)
    for got, expected in zip(self.read(folder), self.read(self.text)):
      np.testing.assert_array_equal(got, expected)

  @parameterized.parameters("int64", "int32", "uint64")
  def test_integers_are_the_ids(self, kind):
    arrays = self.arrays()
    values = [None, 7] + list(range(_LINES - 2))
    for name in criteo_parquet.CATEGORICAL:
      arrays[name] = pa.array(values, kind)
    _, ids, _ = self.read(self.parquet(arrays))
    self.assertEqual(ids[5].tolist(), [criteo_parquet.NULL_ID] + values[1:])

  def test_csv(self):
    self.assertRegex(
        self.error(self.file("".join(l.replace("\t", ",") for l in self.lines))),
        r"line 1: expected 40 fields separated by tabs .*, got 1: '[01],.*'\. The fields are "
        r"separated by commas; make tabs of them: tr ',' '\\t'$")

  @parameterized.parameters(
      (0, lambda line: "label" + line[1:], "line 1: .*number as the label.*A header line"),
      (2, lambda line: line.replace("\t", "\tx", 1),
       "line 3: expected a number in field 2, got 'x"),
      (3, lambda line: "\n \n", "line 5: expected 40 fields.*, got 1: ' '"),
      (4, lambda line: "\u20ac" * 99 + "\n", "line 5: .*, got 1: '.u20ac"))
  def test_a_wrong_line(self, at, change, message):
    lines = list(self.lines)
    lines[at] = change(lines[at])
    self.assertRegex(self.error(self.file("".join(lines))), message)

  def test_empty_lines_are_no_samples(self):
    path = self.file("".join(self.lines[:5]) + "\r\n" + "".join(self.lines[5:]) + "\n\n")
    ctr_data.check(path)
    for found, expected in zip(self.read(path), self.read(self.file("".join(self.lines)))):
      np.testing.assert_array_equal(found, expected)
    self.assertEndsWith(self.error(self.file("\n\n")), "the file is empty")

  def test_lines_limits_the_check(self):
    path = self.file("".join(self.lines) + "x\n")
    ctr_data.check(path, lines=_LINES)
    self.assertIn("line %d:" % (_LINES + 1), self.error(path))

  def test_missing_and_empty_files(self):
    self.assertEndsWith(self.error("/no/such"), "/no/such: No such file or directory")
    self.assertEndsWith(self.error(self.file("")), "the file is empty")
    self.assertEndsWith(self.error(self.create_tempdir().full_path),
                        "the folder has no file whose name ends with .parquet")
    self.assertIn("a.parquet: ", self.error(
        self.create_tempdir().create_file("a.parquet", "PAR1 and no more").full_path))

  @parameterized.parameters(
      ({"I2": None}, "missing: I2; the file has: label, I1, I3"),
      ({"C4": lambda a: a["I4"]}, "column C4: expected text or integers, the same in all of C1 "
       "to C26; C1 is text, C4 is integer"),
      ({"C1": lambda a: a["I4"].cast("float32")}, "column C1: expected text or integers"),
      ({"I9": lambda a: a["C4"]}, "column I9: expected numbers, got text"),
      ({"label": lambda a: pa.array([[1]] * _LINES)}, "column label: expected numbers, got list"),
      ({"label": lambda a: pa.array([None] * _LINES, "int64")},
       "a label in rows 0 to 69 is null"))
  def test_wrong_columns(self, changes, message):
    arrays = self.arrays()
    for name, change in changes.items():
      array = change(arrays) if change else None
      arrays.pop(name) if array is None else arrays.update({name: array})
    self.assertIn(message, self.error(self.parquet(arrays)))

  def test_text_and_integers_do_not_mix(self):
    texts = self.arrays()
    numbers = {n: texts["label"] if n[0] == "C" else a for n, a in texts.items()}
    folder = self.create_tempdir().full_path
    for name, arrays in (("a", texts), ("b", numbers)):
      self.parquet(arrays, os.path.join(folder, name + ".parquet"))
    self.assertIn("b.parquet has integers: expected the same", self.error(folder))
    with self.assertRaisesRegex(criteo.DataError, "must both have categories of text"):
      ctr_data.of_files(self.text, os.path.join(folder, "b.parquet"), 10)
    data = ctr_data.of_files(self.text, os.path.join(folder, "a.parquet"), 10)
    self.assertEqual(data.evaluation, {"path": os.path.join(folder, "a.parquet"), "take": 10})

  def test_without_pyarrow(self):
    path = self.parquet(self.arrays())
    with mock.patch.dict(sys.modules, {"pyarrow_hotfix": None}):
      with self.assertRaisesRegex(criteo.DataError, "pip install pyarrow pyarrow-hotfix"):
        ctr_data.check(path)


if __name__ == "__main__":
  absltest.main()
