# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares batches and Parquet files with plain loops over samples."""

import gc
import importlib
import json
import os
import sys
import threading
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from hugectr import testing
from hugectr.config import model as models
from hugectr.data import arrow
from hugectr.data.arrow import pa, pq
from hugectr.data import batches
from hugectr.data import errors
from hugectr.data import file_list
from hugectr.data import native
from hugectr.data import parquet
from hugectr.data import parquet_columns


def _data(slots, label_dim=1, dense_dim=2, sizes=None, kind="Parquet"):
  inputs = [models.SparseInput("keys", False, 0, slots, None, slots)]
  return models.Data("data", kind, "", None, "label", label_dim, "dense", dense_dim,
                     inputs, sizes, 2, {})


class Files(object):
  """Parquet files with one-hot and multi-hot slots, and their samples in plain lists."""

  def __init__(self, folder, sizes=(7, 5), group=3, seed=0, change=None):
    random = np.random.RandomState(seed)
    self.folder = folder
    self.samples = []  # (label, dense, [keys of slot 0, keys of slot 1])
    names = []
    for k, size in enumerate(sizes):
      samples = [(float(random.randint(2)), random.randn(2).astype(np.float32).tolist(),
                  [[random.randint(10)], random.randint(20, size=random.randint(4)).tolist()])
                 for _ in range(size)]
      self.samples += samples
      columns = {
          "click": pa.array([s[0] for s in samples], pa.float32()),
          "I1": pa.array([s[1][0] for s in samples], pa.float32()),
          "I2": pa.array([s[1][1] for s in samples], pa.float64()),
          "C1": pa.array([s[2][0][0] for s in samples], pa.int32()),
          "C2": pa.array([s[2][1] for s in samples], pa.list_(pa.int64()))}
      if change and k == 1:
        change(columns)
      names.append("%d.parquet" % k)
      pq.write_table(pa.table(columns), os.path.join(folder, names[-1]),
                     row_group_size=group)
    self.list = os.path.join(folder, "_file_list.txt")
    with open(self.list, "w") as f:
      f.write("\n".join([str(len(names))] + [os.path.join(folder, n) for n in names]))
    self.metadata = {
        "file_stats": [{"file_name": n, "num_rows": s} for n, s in zip(names, sizes)],
        "labels": [{"col_name": "click", "index": 0}],
        "conts": [{"col_name": "I1", "index": 1}, {"col_name": "I2", "index": 2}],
        "cats": [{"col_name": "C1", "index": 3}, {"col_name": "C2", "index": 4}]}
    self.write_metadata()

  def write_metadata(self):
    with open(os.path.join(self.folder, "_metadata.json"), "w") as f:
      json.dump(self.metadata, f)

  def source(self, key_type="I64", batch_size=7, **kwargs):
    return parquet.Source(self.list, _data(2, **kwargs), key_type, batch_size, threads=2)


_SAMPLE_MAJOR = [batches.InputLayout(0, 2, False)]
_SLOT_MAJOR = [batches.InputLayout(0, 2, True)]


def _keys_of(batch, is_slot_major, slots=2):
  """Returns the keys of each sample's slots, from a batch of one input."""
  found = batch.inputs[0]
  if not is_slot_major:
    rows = [found.keys[a:b].tolist() for a, b in zip(found.splits, found.splits[1:])]
    return [rows[k:k + slots] for k in range(0, len(rows), slots)]
  at, columns = 0, []
  for splits in found.splits:
    columns.append([found.keys[at + a:at + b].tolist()
                    for a, b in zip(splits, splits[1:])])
    at += splits[-1]
  return [list(slots) for slots in zip(*columns)]


class DataTest(parameterized.TestCase):

  def files(self, **kwargs):
    return Files(self.create_tempdir().full_path, **kwargs)

  def test_a_reader_that_is_garbage_keeps_no_thread(self):
    source = self.files().source()
    before = set(threading.enumerate())
    for repeat in (True, False):
      read = source.reader(_SAMPLE_MAJOR, repeat)
      self.assertIsNotNone(read.next())
      del read
    gc.collect()
    until = time.time() + 60
    while set(threading.enumerate()) - before and time.time() < until:
      time.sleep(.05)
    self.assertEmpty(set(threading.enumerate()) - before)
    read = source.reader(_SAMPLE_MAJOR, True)
    self.assertIsNotNone(read.next())
    read.close()

  @parameterized.product(batch_size=[1, 3, 4, 12, 100], is_slot_major=[False, True])
  def test_batches_hold_every_sample_in_order(self, batch_size, is_slot_major):
    files = self.files()
    layout = _SLOT_MAJOR if is_slot_major else _SAMPLE_MAJOR
    read = files.source(batch_size=batch_size).reader(layout, repeat=False)
    samples = list(files.samples)
    while True:
      batch = read.next()
      if batch is None:
        break
      expected, samples = samples[:batch_size], samples[batch_size:]
      self.assertEqual(batch.size, len(expected))
      self.assertEqual(batch.labels[:, 0].tolist(), [s[0] for s in expected])
      np.testing.assert_array_equal(batch.dense,
                                    np.array([s[1] for s in expected], np.float32))
      self.assertEqual(_keys_of(batch, is_slot_major), [s[2] for s in expected])
    self.assertEmpty(samples)
    self.assertIsNone(read.next())
    read.close()

  def test_ranks_share_each_batch(self):
    files = self.files()
    parts = [list(batches.cut(files.source().chunks(), 5, r, 3)) for r in range(3)]
    at = 0
    for pieces in zip(*parts):
      size = pieces[0][1]
      self.assertEqual([p[1] for p in pieces], [size] * 3)
      found = [label for chunks, _ in pieces for label in batches.joined(chunks).labels[:, 0]]
      self.assertEqual(found, [s[0] for s in files.samples[at:at + size]])
      at += size
    self.assertEqual(at, len(files.samples))
    self.assertEqual([batches.rank_range(5, r, 3) for r in range(3)],
                     [(0, 2), (2, 4), (4, 5)])
    self.assertEqual([batches.rank_range(1, r, 3) for r in range(3)],
                     [(0, 1), (1, 1), (1, 1)])

  def test_repeats_in_the_midst_of_a_batch(self):
    files = self.files()
    read = files.source(batch_size=10).reader(_SAMPLE_MAJOR, repeat=True)
    labels = np.concatenate([read.next().labels[:, 0] for _ in range(6)])
    read.close()
    self.assertEqual(labels.tolist(), [s[0] for s in files.samples] * 5)

  def test_adds_offsets_of_slots(self):
    files = self.files()
    source = files.source(sizes=[10, 20])
    chunk = batches.joined(list(source.chunks()))
    keys = _keys_of(batches.batch_of(chunk, _SAMPLE_MAJOR, 12), False)
    self.assertEqual(keys, [[s[2][0], [k + 10 for k in s[2][1]]] for s in files.samples])

  def test_empty_slots_and_empty_parts(self):
    empty = batches.Chunk(np.zeros([0, 1]), np.zeros([0, 2]), [
        batches.Slot(np.zeros([0], np.int64), None),
        batches.Slot(np.zeros([0], np.int64), np.zeros([1], np.int64))])
    for layout in (_SLOT_MAJOR, _SAMPLE_MAJOR):
      batch = batches.batch_of(empty, layout, 4)
      self.assertEqual((batch.size, batch.global_size), (0, 4))
      self.assertEqual(batch.inputs[0].keys.tolist(), [])

  @parameterized.product(layouts=[
      [batches.InputLayout(0, 5, False)], [batches.InputLayout(0, 5, True)],
      [batches.InputLayout(3, 2, True), batches.InputLayout(0, 3, False)]],
                         counts=[[4], [200, 3], [1, 0, 150], [0]])
  def test_samples_with_one_key_are_joined_as_numpy_does(self, layouts, counts):
    random = np.random.RandomState(1)
    chunks = []
    for count in counts:
      # Views of larger arrays, and columns of a table.
      floats, keys = random.randn(count + 2, 3), random.randint(0, 1 << 60, [5, count + 2])
      chunks.append(batches.part(batches.Chunk(
          floats[:, :1].astype(np.float32), floats[:, 1:].astype(np.float32),
          [batches.Slot(keys[s] if s else np.asfortranarray(keys.T)[:, 0], None, 100 * s)
           for s in range(5)]), 1, 1 + count))
    joiner = native.Joiner(native.Shape(_data(5), layouts, 9, False, 0, 1, 1))
    found = joiner.batch_of(chunks, 99)
    expected = batches.batch_of(batches.joined([batches.plain(c) for c in chunks]), layouts, 99)
    del joiner
    self.assertEqual((found.size, found.global_size), (sum(counts), 99))
    for a, b in ((found.labels, expected.labels), (found.dense, expected.dense)) + tuple(
        pair for p, q in zip(found.inputs, expected.inputs) for pair in zip(p, q)):
      self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
      np.testing.assert_array_equal(a, b)
      self.assertEqual(a.ctypes.data % 64, 0)

  @parameterized.parameters(
      (lambda c: c.update(click=pa.array([1., None, 0., 1., 1.], pa.float32())),
       "1.parquet: column 'click', row 1: a null"),
      (lambda c: c.update(C1=pa.array([1, 2, 3, 4, None], pa.int64())),
       "1.parquet: column 'C1', row 4: a null"),
      (lambda c: c.update(C2=pa.array([[1], [], [], [2, None], []], pa.list_(pa.int64()))),
       "1.parquet: column 'C2', row 3: a null in a list"),
      (lambda c: c.update(C2=pa.array([[1, 2], [3, 4], None, [5, 6], [7, 8]],
                                      pa.list_(pa.int64(), 2))),
       # Newer versions of pyarrow, which have no PyExtensionType, can read them.
       "1.parquet: row group 0 cannot be read: Expected all lists to be of size=2"
       if hasattr(pa, "PyExtensionType") else "1.parquet: column 'C2', row 2: a null"),
      (lambda c: c.update(C2=pa.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, None]],
                                      pa.list_(pa.int64(), 2))),
       "1.parquet: column 'C2', row 4: a null in a list"),
      (lambda c: c.update(C1=pa.array(["a"] * 5)),
       "1.parquet: column 'C1': expected integers, or lists of them, got string"),
      (lambda c: c.update(I1=pa.array(["a"] * 5)),
       "1.parquet: column 'I1': expected numbers, got string"),
      (lambda c: c.update(I1=pa.array([[1., 2.]] * 5)),
       "1.parquet: columns 'I1', 'I2' hold 3 numbers of a sample, and dense_dim is 2"),
      (lambda c: c.update(I1=pa.array([[1.], [1.], [1.], [1.], [1., 2.]])),
       "1.parquet: column 'I1', row 4: expected a list of 1 numbers, as in row 3, got 2"),
      (lambda c: c.update(C1=pa.array([1, 2, 10, 4, 5], pa.int64())),
       r"1.parquet: column 'C1', row 2: key 10 is not in \[0, 10\)"),
      (lambda c: c.update(C2=pa.array([[1], [], [], [2, -1], []])),
       r"1.parquet: column 'C2', row 3: key -1 is not in \[0, 20\)"),
  )
  def test_tells_file_column_and_row(self, change, expected):
    files = self.files(change=change)
    read = files.source(sizes=[10, 20]).reader(_SAMPLE_MAJOR, repeat=False)
    self.assertEqual(read.next().size, 7)
    for _ in range(2):
      with self.assertRaisesRegex(errors.DataError, expected):
        read.next()
    read.close()

  @parameterized.parameters(
      pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(),
      pa.uint64(), pa.float32(), pa.float64(), pa.bool_())
  def test_columns_of_every_type(self, kind):
    is_bool = pa.types.is_boolean(kind)
    values = [True, False, True, True, False] if is_bool else [1, 2, 3, 4, 5]
    for column in (pa.array(values, kind).slice(1, 3),
                   pa.chunked_array([pa.array(values[1:3], kind),
                                     pa.array(values[3:4], kind)]),
                   pa.chunked_array([], kind)):
      found = parquet_columns.Columns("f", pa.table({"a": column}), 0)
      expected = values[1:4] if len(column) else []
      self.assertEqual(found.floats("a")[:, 0].tolist(), [float(v) for v in expected])
      if pa.types.is_integer(kind):
        slot = found.keys("a", 10, 9, None)
        self.assertEqual((slot.keys.tolist(), slot.added), (expected, 10))
      lists = pa.ListArray.from_arrays(pa.array([0, 0, 2, 3]), pa.array(values[1:4], kind))
      found = parquet_columns.Columns("f", pa.table({"a": lists.slice(1, 2)}), 0)
      if pa.types.is_integer(kind):
        slot = found.keys("a", 0, None, None)
        self.assertEqual((slot.keys.tolist(), slot.offsets.tolist()), ([2, 3, 4], [0, 2, 3]))

  @parameterized.parameters(pa.list_(pa.int64()), pa.large_list(pa.int64()),
                            pa.list_(pa.int64(), 2), None)
  def test_columns_with_dictionaries(self, kind):
    # Chunks with dictionaries of their own.
    rows = [[7, 5], [5, 5], [9, 7], [5, 9]]
    if kind is None:
      chunks = [pa.array(row).dictionary_encode() for row in rows]
    else:
      offsets = pa.large_list if pa.types.is_large_list(kind) else pa.list_
      chunks = []
      for pair in (rows[:2], rows[2:]):
        whole = pa.array([[1, 2]] + pair, kind)
        values = whole.values.dictionary_encode()
        chunks.append(pa.Array.from_buffers(
            pa.list_(values.type, 2) if pa.types.is_fixed_size_list(kind)
            else offsets(values.type), 3, whole.buffers()[:whole.type.num_buffers], 0, 0,
            [values]).slice(1))
    found = parquet_columns.Columns("f", pa.table({"a": pa.chunked_array(chunks)}), 0)
    expected = [x for row in rows for x in row]
    self.assertEqual(found.keys("a", 0, None, None).keys.tolist(), expected)
    self.assertEqual(found.floats("a").ravel().tolist(), expected)
    names = pa.array(["a", "b"]).dictionary_encode()
    with self.assertRaisesRegex(errors.DataError, "column 'a': expected integers"):
      parquet_columns.Columns("f", pa.table({"a": names}), 0).keys("a", 0, None, None)
    nulls = pa.array([1, None]).dictionary_encode()
    with self.assertRaisesRegex(errors.DataError, "column 'a', row 1: a null"):
      parquet_columns.Columns("f", pa.table({"a": nulls}), 0).keys("a", 0, None, None)

  @parameterized.parameters(pa.uint8(), pa.uint16(), pa.uint32())
  def test_unsigned_numbers_are_not_negative(self, kind):
    most = 2 ** kind.bit_width - 1
    found = parquet_columns.Columns("f", pa.table({"a": pa.array([1, most], kind)}), 0)
    self.assertEqual(found.keys("a", 0, None, None).keys.tolist(), [1, most])
    self.assertEqual(found.floats("a")[:, 0].tolist(), [1., float(np.float32(most))])

  def test_lists_of_a_fixed_size(self):

    def change(columns):
      columns["I1"] = pa.array([[float(k)] for k in range(5)], pa.list_(pa.float32(), 1))
      columns["C2"] = pa.array([[k, 2 * k] for k in range(5)], pa.list_(pa.int64(), 2))

    # Row groups of 3 rows: the arrays of the second do not start at their first
    # element.
    chunks = list(self.files(sizes=(1, 5), change=change).source().chunks())[1:]
    self.assertLen(chunks, 2)
    self.assertEqual([x for c in chunks for x in c.dense[:, 0].tolist()],
                     [0., 1., 2., 3., 4.])
    self.assertEqual([k for c in chunks for k in c.slots[1].keys.tolist()],
                     [0, 0, 1, 2, 2, 4, 3, 6, 4, 8])
    self.assertEqual([c.slots[1].offsets.tolist() for c in chunks], [[0, 2, 4, 6], [0, 2, 4]])
    whole = pa.array([[k, k] for k in range(5)], pa.list_(pa.int32(), 2))
    found = parquet_columns.Columns("f", pa.table({"a": whole.slice(2, 2)}), 0)
    self.assertEqual(found.keys("a", 0, None, None).keys.tolist(), [2, 2, 3, 3])
    self.assertEqual(found.floats("a").tolist(), [[2., 2.], [3., 3.]])

  def test_keys_of_32_bits(self):
    files = self.files(change=lambda c: c.update(
        C1=pa.array([1, 2, 2 ** 32, 4, 5], pa.int64())))
    with self.assertRaisesRegex(errors.DataError, "row 2: key 4294967296 does not fit"):
      list(files.source(key_type="I32").chunks())
    self.assertLen(list(files.source().chunks()), 5)

  def test_metadata_must_fit(self):
    files = self.files()
    meta = files.metadata
    for change, expected in (
        (lambda: meta["cats"].pop(), "1 columns of cats, but the sparse inputs have 2"),
        (lambda: meta["cats"][1].update(col_name="C3"),
         "there is no column 'C3', which _metadata.json lists in cats"),
        (lambda: meta["cats"][1].update(col_name="C2", index=1),
         "column 'C2' has index 4, but 1 in _metadata.json"),
        (lambda: meta["cats"][1].update(col_name="C1", index=3),
         "_metadata.json names a column twice"),
        (lambda: meta["file_stats"][1].update(num_rows=4), "5 rows, but 4 in"),
        (lambda: meta["labels"].clear(), "labels and cats must each name a column"),
        (lambda: meta.update(cats=3), "_metadata.json: expected {\"file_stats\"")):
      files = self.files()
      meta = files.metadata
      change()
      files.write_metadata()
      with self.assertRaisesRegex(errors.DataError, expected):
        files.source()
    files = self.files()
    path = os.path.join(files.folder, "_metadata.json")
    with open(path, "w", encoding="utf-8-sig") as f:
      json.dump(files.metadata, f)
    self.assertLen(list(files.source().chunks()), 5)
    os.remove(path)
    with self.assertRaisesRegex(errors.DataError, "_metadata.json: cannot be read"):
      files.source()

  @parameterized.parameters(
      ("", "line 1: expected the number of files"),
      ("x\na", "line 1: expected the number of files, at least 1, got 'x'"),
      ("0\n", "line 1: expected the number of files"),
      ("2\na\n", "line 1 gives 2 files, but 1 follow"),
      ("1\nno.parquet", "line 2: there is no file 'no.parquet'"))
  def test_file_lists(self, text, expected):
    path = self.create_tempfile(content=text).full_path
    with self.assertRaisesRegex(errors.DataError, expected):
      file_list.read(path)
    with self.assertRaisesRegex(errors.DataError, "cannot be read"):
      file_list.read(path + ".no")

  @parameterized.parameters("utf-8", "utf-8-sig")
  def test_a_path_beside_the_list(self, encoding):
    files = self.files()
    with open(files.list, "w", encoding=encoding) as f:
      f.write("2\n0.parquet\n1.parquet\n")
    self.assertEqual(file_list.read(files.list),
                     [os.path.join(files.folder, "%d.parquet" % k) for k in range(2)])

  def test_damaged_files_are_errors_that_name_them(self):
    files = self.files()
    path = os.path.join(files.folder, "1.parquet")
    with open(path, "rb") as f:
      data = f.read()
    random = np.random.RandomState(1)
    raised = 0
    for k in range(60):
      damaged = bytearray(data)
      if k % 2:
        damaged = damaged[:random.randint(len(data))]
      else:
        for at in random.randint(len(data), size=8):
          damaged[at] ^= 1 << random.randint(8)
      with open(path, "wb") as f:
        f.write(damaged)
      try:
        list(files.source().chunks())
      except errors.DataError as e:
        raised += 1
        self.assertIn("1.parquet", str(e))
    self.assertGreater(raised, 30)

  @parameterized.parameters("click", "I1", "C1", "C2")
  def test_a_file_cannot_run_code(self, column):
    marker = os.path.join(self.create_tempdir().full_path, "marker")
    files = self.files()
    path = os.path.join(files.folder, "1.parquet")
    testing.write_with_code(path, column, marker)
    if hasattr(arrow.pa, "PyExtensionType"):
      with self.assertRaisesRegex(
          errors.DataError, "1.parquet: .*a column has the extension type "
          "'arrow.py_extension_type'.*Write the column again"):
        list(files.source().chunks())
    else:
      # Newer versions of pyarrow read the column without its extension type.
      list(files.source().chunks())
    self.assertFalse(os.path.exists(marker))

  def test_pyarrow_without_its_protection_is_refused(self):
    with mock.patch.dict(sys.modules, {"pyarrow_hotfix": None}):
      with self.assertRaisesRegex(ImportError, "pip install pyarrow-hotfix"):
        importlib.reload(arrow)

  def test_closing_a_reader_does_not_hang(self):
    for taken in (0, 1, 5):
      read = self.files().source(batch_size=2).reader(_SAMPLE_MAJOR, repeat=True)
      for _ in range(taken):
        read.next()
      read.close()

  def test_data_without_samples(self):
    files = self.files(sizes=(0, 0))
    read = files.source(batch_size=2).reader(_SAMPLE_MAJOR, repeat=True)
    with self.assertRaisesRegex(errors.DataError, "no samples"):
      read.next()
    read.close()
    read = files.source(batch_size=2).reader(_SAMPLE_MAJOR, repeat=False)
    self.assertIsNone(read.next())
    read.close()


if __name__ == "__main__":
  absltest.main()
