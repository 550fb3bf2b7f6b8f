# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of ParquetDataset and data frames."""

import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.deeprec import dataframe
from embedding_variable.deeprec import parquet_dataset
from embedding_variable.deeprec import work_queue
from embedding_variable.tf_names import autograph
from embedding_variable.tools import arrow

_Field = dataframe.DataFrame.Field
_TYPES = ("int8", "uint8", "int32", "int64", "uint32", "uint64", "float32",
          "float64")


def _all(dataset):
  """Returns the elements of a dataset."""
  element = tf.data.make_initializable_iterator(dataset)
  following, found = element.get_next(), []
  with tf.Session() as session:
    session.run(element.initializer)
    try:
      while True:
        found.append(session.run(following))
    except tf.errors.OutOfRangeError:
      return found


class ParquetTest(parameterized.TestCase):

  def setUp(self):
    super(ParquetTest, self).setUp()
    self._pa = arrow.load()
    self._folder = self.create_tempdir().full_path
    self.enter_context(tf.Graph().as_default())

  def _write(self, name, rows_per_group=None, **columns):
    path = os.path.join(self._folder, name)
    self._pa.parquet.write_table(self._pa.table(columns), path,
                                 row_group_size=rows_per_group)
    return path

  def _two_files(self):
    return [self._write("a", x=self._pa.array(range(5))),
            self._write("b", x=self._pa.array(range(5, 8)))]

  def _x(self, dataset):
    return [list(e["x"]) for e in _all(dataset)]

  @parameterized.parameters(*_TYPES)
  def test_numbers(self, kind):
    values = np.array([0, 1, 100, 7, 3], kind)
    path = self._write("a", v=self._pa.array(values))
    dataset = parquet_dataset.ParquetDataset(path, 2)
    self.assertEqual(dataset.output_types, {"v": tf.as_dtype(kind)})
    found = [e["v"] for e in _all(dataset)]
    self.assertEqual([len(v) for v in found], [2, 2, 1])
    np.testing.assert_array_equal(np.concatenate(found), values)
    self.assertEqual(found[0].dtype, kind)

  def test_strings_and_binary(self):
    path = self._write("a", s=self._pa.array(["", "é", "b\0"]),
                       b=self._pa.array([b"\xff", b"", b"x"]))
    (element,) = _all(parquet_dataset.ParquetDataset(path, 5))
    self.assertEqual(list(element["s"]), [b"", "é".encode(), b"b\0"])
    self.assertEqual(list(element["b"]), [b"\xff", b"", b"x"])

  def test_lists(self):
    lists = [[1, 2], [], [3], [4, 5, 6]]
    nested = [[[1.], []], [], [[2., 3.], [4.]], [[5.]]]
    path = self._write("a", l=self._pa.array(lists), n=self._pa.array(nested))
    dataset = parquet_dataset.ParquetDataset([path], 3)
    self.assertEqual([(f.name, f.dtype, f.ragged_rank) for f in dataset.fields],
                     [("l", tf.int64, 1), ("n", tf.float64, 2)])
    first, second = _all(dataset)
    self.assertIsInstance(first["l"], dataframe.DataFrame.Value)
    np.testing.assert_equal(first["l"].values, [1, 2, 3])
    np.testing.assert_equal(first["l"].nested_row_splits[0], [0, 2, 2, 3])
    self.assertEqual(first["l"].nested_row_splits[0].dtype, np.int32)
    np.testing.assert_equal(first["n"].values, [1, 2, 3, 4])
    np.testing.assert_equal(first["n"].nested_row_splits[0], [0, 2, 2, 4])
    np.testing.assert_equal(first["n"].nested_row_splits[1], [0, 1, 1, 3, 4])
    # The second batch is a slice of the column's memory.
    np.testing.assert_equal(second["l"].nested_row_splits[0], [0, 3])
    np.testing.assert_equal(second["l"].values, [4, 5, 6])
    np.testing.assert_equal(second["n"].nested_row_splits[1], [0, 1])

  @parameterized.parameters(2, None)
  def test_columns_of_other_writers(self, rows_per_group):
    pa = self._pa
    names = ["b", "a", "b", "", "c", "c"]
    lists = [["x", "y"], [], ["y"], ["z", "x", "x"], ["w"], ["y"]]
    nested = [[[1], []], [], [[2, 3], [1]], [[3]], [[1, 1]], [[]]]
    pieces = [pa.array(v).dictionary_encode() for v in (["x", "y", "y", "z", "x", "x"],
                                                        ["w", "y"])]
    offsets = [0, 2, 2, 3, 6], [0, 1, 2]
    path = self._write(
        "a", rows_per_group,
        category=pa.array(names).dictionary_encode(),
        code=pa.array([5, 7, 5, 5, 9, 7], pa.int32()).dictionary_encode(),
        large=pa.array(names, pa.large_string()),
        large_category=pa.array(names, pa.large_string()).dictionary_encode(),
        binary=pa.array([n.encode() for n in names], pa.large_binary()),
        lists=pa.chunked_array([pa.ListArray.from_arrays(pa.array(o, pa.int32()), p)
                                for o, p in zip(offsets, pieces)]),
        large_lists=pa.chunked_array([pa.LargeListArray.from_arrays(pa.array(o, pa.int64()), p)
                                      for o, p in zip(offsets, pieces)]),
        strings=pa.array(lists, pa.large_list(pa.large_string())),
        nested=pa.array(nested, pa.large_list(pa.list_(pa.int64()))))
    for batch_size in (1, 3, 4):
      found = _all(parquet_dataset.ParquetDataset(path, batch_size))
      for name in ("category", "large", "large_category", "binary"):
        self.assertEqual([x.decode() for e in found for x in e[name]], names, name)
      self.assertEqual([x for e in found for x in e["code"]], [5, 7, 5, 5, 9, 7])
      for name in ("lists", "large_lists", "strings"):
        self.assertEqual([row for e in found for row in self._as_lists(e[name])], lists)
      self.assertEqual([[list(inner) for inner in row] for e in found
                        for row in self._as_lists(e["nested"])], nested)

  def test_lists_of_a_large_dictionary(self):
    # Too large for a page: the rest of its values are not encoded by it.
    values = ["%d %s" % (i, "x" * 50) for i in range(30000)]
    order = np.random.RandomState(0).randint(0, 30000, [40000])
    inner = self._pa.array([values[i] for i in order]).dictionary_encode()
    offsets = self._pa.array(range(0, 40001, 4), self._pa.int32())
    path = self._write("a", 7000, x=self._pa.ListArray.from_arrays(offsets, inner))
    found = [t.decode() for e in _all(parquet_dataset.ParquetDataset(path, 4096))
             for t in e["x"].values]
    self.assertEqual(found, [values[i] for i in order])

  def test_nulls_of_dictionaries_are_an_error(self):
    pa = self._pa
    indices = pa.array([0, 1, 0])
    for column in (pa.array(["a", None, "b"]).dictionary_encode(),
                   pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]),
                                            pa.array(["a", None, "b"]).dictionary_encode())):
      path = self._write("a", x=column)
      with self.assertRaisesRegex(tf.errors.OpError, "'x' has 1 nulls"):
        _all(parquet_dataset.ParquetDataset(path, 3))
    path = self._write("a", x=pa.DictionaryArray.from_arrays(indices, ["a", "b"]))
    (element,) = _all(parquet_dataset.ParquetDataset(path, 3))
    self.assertEqual(list(element["x"]), [b"a", b"b", b"a"])

  def test_to_sparse(self):
    path = self._write("a", l=self._pa.array([[1, 2], [], [3]]),
                       x=self._pa.array([1, 2, 3]))
    dataset = parquet_dataset.ParquetDataset(path, 3).apply(dataframe.to_sparse())
    (element,) = _all(dataset)
    np.testing.assert_equal(element["l"].indices, [[0, 0], [0, 1], [2, 0]])
    np.testing.assert_equal(element["l"].dense_shape, [3, 2])
    np.testing.assert_equal(element["x"], [1, 2, 3])
    rows = _all(parquet_dataset.ParquetDataset(path, 3).map(
        lambda e: (e["x"], e["l"])).apply(dataframe.unbatch_and_to_sparse()))
    self.assertEqual([r[0] for r in rows], [1, 2, 3])
    self.assertEqual([list(r[1].values) for r in rows], [[1, 2], [], [3]])

  def test_a_shape_makes_lists_dense(self):
    path = self._write("a", m=self._pa.array([[1., 2., 3., 4.], [5., 6., 7., 8.]]))
    dataset = parquet_dataset.ParquetDataset(path, 2, [_Field("m", shape=[2, 2])])
    self.assertEqual(dataset.output_shapes["m"].as_list(), [None, 2, 2])
    (element,) = _all(dataset)
    np.testing.assert_equal(element["m"], [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    short = self._write("b", m=self._pa.array([[1., 2., 3.], [5., 6., 7., 8., 9.]]))
    with self.assertRaisesRegex(tf.errors.OpError, "'m'.*shape"):
      _all(parquet_dataset.ParquetDataset(short, 2, [_Field("m", shape=[2, 2])]))

  def test_autograph_converts_nothing(self):
    # Its conversion of a few functions without control flow takes seconds.
    path = self._write("f", x=self._pa.array([[1], [2, 3]]))
    with mock.patch.object(autograph, "converted_call", side_effect=AssertionError):
      dataset = parquet_dataset.ParquetDataset(path, batch_size=2)
      dataset = dataset.apply(dataframe.to_sparse())
    self.assertEqual(list(_all(dataset)[0]["x"].values), [1, 2, 3])

  def test_batches_do_not_cross_files(self):
    files = self._two_files()
    self.assertEqual(self._x(parquet_dataset.ParquetDataset(files, 2)),
                     [[0, 1], [2, 3], [4], [5, 6], [7]])
    dataset = parquet_dataset.ParquetDataset(files, 2, drop_remainder=True)
    self.assertEqual(dataset.output_shapes["x"].as_list(), [2])
    self.assertEqual(self._x(dataset), [[0, 1], [2, 3], [5, 6]])

  def test_batches_cross_files_on_request(self):
    dataset = parquet_dataset.ParquetDataset(self._two_files(), 3, cross_files=True)
    self.assertEqual(self._x(dataset.repeat(2)), [[0, 1, 2], [3, 4, 5], [6, 7]] * 2)

  def test_batches_cross_row_groups(self):
    path = self._write("a", rows_per_group=3, x=self._pa.array(range(10)))
    self.assertEqual(self._x(parquet_dataset.ParquetDataset(path, 4)),
                     [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])

  def test_partitions(self):
    path = self._write("a", rows_per_group=2, x=self._pa.array(range(10)))
    found = [self._x(parquet_dataset.ParquetDataset(
        path, 4, partition_count=3, partition_index=i)) for i in range(3)]
    self.assertEqual(found, [[[0, 1, 6, 7]], [[2, 3, 8, 9]], [[4, 5]]])
    self.assertEqual(self._x(parquet_dataset.ParquetDataset(
        path, 4, partition_count=9, partition_index=7)), [])

  @parameterized.parameters(2, tf.data.experimental.AUTOTUNE)
  def test_parallel_reads(self, parallel):
    files = self._two_files()
    dataset = parquet_dataset.ParquetDataset(files, 2, num_parallel_reads=parallel)
    self.assertCountEqual(sum(self._x(dataset), []), range(8))

  def test_names_as_tensors_and_datasets(self):
    files = self._two_files()
    fields = [_Field("x", tf.int64, 0)]
    names = tf.data.Dataset.from_tensor_slices(files)
    expected = [[0, 1, 2, 3, 4], [5, 6, 7]]
    for dataset in (parquet_dataset.ParquetDataset(tf.constant(files), 9, fields),
                    parquet_dataset.ParquetDataset(names, 9, fields),
                    names.apply(parquet_dataset.read_parquet(9, fields))):
      self.assertEqual(self._x(dataset), expected)
    with self.assertRaisesRegex(ValueError, "fields="):
      parquet_dataset.ParquetDataset(names, 9)
    with self.assertRaisesRegex(ValueError, "fields="):
      parquet_dataset.ParquetDataset(names, 9, [_Field("x")])

  def test_names_from_a_work_queue(self):
    files = self._two_files()
    queue = work_queue.WorkQueue(files, shuffle=False)
    dataset = parquet_dataset.ParquetDataset(queue.input_dataset(), 9,
                                             [_Field("x", tf.int64, 0)])
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    with tf.Session() as session:
      session.run([queue.initializer, iterator.initializer])
      coord = tf.train.Coordinator()
      tf.train.start_queue_runners(session, coord)
      self.assertEqual([list(session.run(element)["x"]) for _ in files],
                       [[0, 1, 2, 3, 4], [5, 6, 7]])
      coord.request_stop()

  def test_fields_choose_columns(self):
    path = self._write("a", x=self._pa.array([1]), y=self._pa.array([2.]),
                       flag=self._pa.array([True]))
    with self.assertRaisesRegex(ValueError, "'flag' has type bool"):
      parquet_dataset.ParquetDataset(path)
    dataset = parquet_dataset.ParquetDataset(path, fields=["y", _Field("x", tf.int64)])
    self.assertEqual(_all(dataset), [{"x": [1], "y": [2.]}])
    fields = parquet_dataset.ParquetDataset.read_schema(path, ["Y", "X"], lower=True)
    self.assertEqual([f.name for f in fields], ["y", "x"])

  @parameterized.parameters(
      ("z", "no column 'z'"), (_Field("x", tf.int32), "dtype int64.*int32"),
      (_Field("x", ragged_rank=1), "ragged_rank 0"))
  def test_wrong_fields(self, field, message):
    path = self._write("a", x=self._pa.array([1]))
    with self.assertRaisesRegex(ValueError, message):
      parquet_dataset.ParquetDataset(path, fields=[field])

  @parameterized.parameters(
      ({}, []), (dict(batch_size=0), ["a"]), (dict(partition_count=0), ["a"]),
      (dict(partition_index=1), ["a"]), (dict(num_sequential_reads=0), ["a"]))
  def test_wrong_numbers(self, options, files):
    with self.assertRaises(ValueError):
      parquet_dataset.ParquetDataset(files, **options)

  def test_wrong_names(self):
    for names in ([1], tf.constant(1), tf.data.Dataset.range(2)):
      with self.assertRaises(TypeError):
        parquet_dataset.ParquetDataset(names)

  @parameterized.parameters((3, 7), (4, 4), (64, 5), (1000, 1000), (5, 1))
  def test_batches_are_cut_from_blocks(self, rows_per_group, batch_size):
    numbers = np.random.RandomState(batch_size)

    def text():
      return "x" * numbers.randint(0, 40) + str(numbers.randint(100))

    def lists(make):
      return [[make() for _ in range(numbers.randint(0, 4))] for _ in range(rows)]

    rows, columns, files = 333, {}, []
    for name in "ab":
      columns[name] = {
          "number": list(numbers.randint(0, 99, rows)), "text": [
              text() for _ in range(rows)],
          "square": [[text() for _ in range(4)] for _ in range(rows)],
          "texts": lists(text), "nested": lists(
              lambda: [text() for _ in range(numbers.randint(0, 3))])}
      files.append(self._write(name, rows_per_group, **{
          k: self._pa.array(v) for k, v in columns[name].items()}))
    fields = ["text", "nested", _Field("square", shape=[2, 2]), "texts", "number"]
    found = _all(parquet_dataset.ParquetDataset(files, batch_size, fields,
                                                cross_files=True))
    expected = {k: columns["a"][k] + columns["b"][k] for k in columns["a"]}
    self.assertCountEqual(found[0], expected)
    for i, batch in enumerate(found):
      own = {k: v[i * batch_size:(i + 1) * batch_size] for k, v in expected.items()}
      self.assertEqual(batch["number"].tolist(), own["number"])
      self.assertEqual([t.decode() for t in batch["text"]], own["text"])
      self.assertEqual([[t.decode() for t in row] for row in
                        batch["square"].reshape(-1, 4)], own["square"])
      self.assertEqual(self._as_lists(batch["texts"]), own["texts"])
      self.assertEqual(self._as_lists(batch["nested"]), own["nested"])
    self.assertLen(found, -(-2 * rows // batch_size))

  def _as_lists(self, value):
    """Returns a batch of lists as Python's lists."""
    found = [t.decode() if isinstance(t, bytes) else t for t in value.values]
    for splits in reversed(value.nested_row_splits):
      self.assertEqual(splits[0], 0)
      self.assertEqual(splits[-1], len(found))
      found = [found[b:e] for b, e in zip(splits[:-1], splits[1:])]
    return found

  def test_nulls_are_an_error_of_their_batch(self):
    for column in ([1, 2, 3, None], [["a"], [], ["b"], None], [["a"], [], ["b", None],
                                                               ["c"]]):
      path = self._write("a", x=self._pa.array(column))
      iterator = tf.data.make_initializable_iterator(
          parquet_dataset.ParquetDataset(path, 2))
      following = iterator.get_next()
      with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(following)
        with self.assertRaisesRegex(tf.errors.OpError, "'x' has 1 nulls"):
          session.run(following)

  def test_a_file_with_another_schema_is_an_error(self):
    files = [self._write("a", x=self._pa.array([1])),
             self._write("b", x=self._pa.array([1.]))]
    with self.assertRaisesRegex(tf.errors.OpError, "'x' is double|'x' is float64"):
      _all(parquet_dataset.ParquetDataset(files, 2))


if __name__ == "__main__":
  absltest.main()
