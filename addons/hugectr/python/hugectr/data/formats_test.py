# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests Norm and Raw files: bytes made by hand, round trips, malformed files."""

import os
import struct

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import errors
from hugectr.data import native
from hugectr.data import norm
from hugectr.data import numpy_readers
from hugectr.data import raw
from hugectr.data import reader
from hugectr.data import sources


def _data(slots=2, label_dim=1, dense_dim=2, sizes=None, kind="", **clause):
  inputs = [models.SparseInput("keys", False, 0, slots, None, slots)]
  return models.Data("data", kind, "", None, "label", label_dim, "dense", dense_dim,
                     inputs, sizes, 2, clause)


def _samples(count, seed, most=4, key_bits=32, slots=2, dense_dim=2):
  """Returns [(label, dense, [keys of each slot])] with 0 to `most` keys, or always 1."""
  random = np.random.RandomState(seed)
  found = []
  for _ in range(count):
    keys = []
    for _ in range(slots):
      hot = 1 if most == 1 else random.randint(most + 1)
      keys.append([int(k) for k in random.randint(0, (1 << (key_bits - 1)) - 1, hot)])
    found.append((float(random.randint(2)),
                  random.randn(dense_dim).astype(np.float32).tolist(), keys))
  return found


def _norm_bytes(samples, with_sums, key_format, dense_dim=2, slots=2):
  """Returns a Norm file, written sample by sample."""
  out = [struct.pack("<8q", int(with_sums), len(samples), 1, dense_dim, slots, 0, 0, 0)]
  for label, dense, keys in samples:
    record = struct.pack("<%df" % (1 + dense_dim), label, *dense)
    for slot in keys:
      record += struct.pack("<i%d%s" % (len(slot), key_format), len(slot), *slot)
    if with_sums:
      record = (struct.pack("<i", len(record)) + record +
                struct.pack("B", sum(record) % 256))
    out.append(record)
  return b"".join(out)


def _as_samples(chunks):
  found = []
  for chunk in chunks:
    for i in range(batches.size_of(chunk)):
      keys = []
      for slot in chunk.slots:
        if slot.offsets is None:
          keys.append([int(slot.keys[i])])
        else:
          keys.append(slot.keys[slot.offsets[i]:slot.offsets[i + 1]].tolist())
      found.append((float(chunk.labels[i, 0]), chunk.dense[i].tolist(), keys))
  return found


class NormTest(parameterized.TestCase):

  def list_of(self, *files):
    folder = self.create_tempdir().full_path
    for k, data in enumerate(files):
      with open(os.path.join(folder, "%d.data" % k), "wb") as f:
        f.write(data)
    path = os.path.join(folder, "list.txt")
    with open(path, "w") as f:
      f.write("%d\n" % len(files))
      f.writelines("%d.data\n" % k for k in range(len(files)))
    return path

  def read(self, path, with_sums=False, key_type="I32", **kwargs):
    data = _data(check="Sum" if with_sums else "None", **kwargs)
    return norm.Source(path, data, key_type, batch_size=100, threads=2)

  def test_bytes_by_hand(self):
    record = (b"\x00\x00\x80\x3f" + b"\x00\x00\x00\x40" + b"\x00\x00\x00\xbf" +
              b"\x02\x00\x00\x00" + b"\x07\x00\x00\x00" + b"\xff\xff\xff\xff" +
              b"\x00\x00\x00\x00")
    header = b"\x01" + b"\x00" * 7 + b"\x01" + b"\x00" * 7 + b"\x01" + b"\x00" * 7 + (
        b"\x02" + b"\x00" * 7) * 2 + b"\x00" * 24
    data = header + b"\x1c\x00\x00\x00" + record + bytes([sum(record) % 256])
    expected = [(1., [2., -.5], [[7, 2 ** 32 - 1], []])]
    self.assertEqual(_norm_bytes(expected, True, "I"), data)
    self.assertEqual(
        _as_samples(self.read(self.list_of(data), with_sums=True).chunks()), expected)

  @parameterized.product(with_sums=[False, True], key_type=["I32", "I64"], most=[1, 4])
  def test_reads_and_writes(self, with_sums, key_type, most):
    key_format, bits = ("q", 64) if key_type == "I64" else ("I", 32)
    files = [_samples(n, seed=n, most=most, key_bits=bits) for n in (37, 0, 1, 500)]
    data = [_norm_bytes(f, with_sums, key_format) for f in files]
    whole = [s for f in files for s in f]
    # Tiles that end within records, and tiles smaller than a record.
    for tile in (0, 1024, 16):
      chunks = list(self.read(self.list_of(*data), with_sums, key_type).chunks(tile))
      self.assertEqual(_as_samples(chunks), whole)
    path = self.create_tempdir().full_path + "/f"
    writer = norm.Writer(path, _data(check="Sum" if with_sums else "None"), key_type)
    for chunk in chunks:
      writer.add(chunk)
    writer.close()
    with open(path, "rb") as f:
      self.assertEqual(f.read(), _norm_bytes(whole, with_sums, key_format))

  def test_negative_keys_of_64_bits(self):
    samples = [(0., [1., 2.], [[-1], [-2 ** 63, 2 ** 63 - 1]])]
    path = self.list_of(_norm_bytes(samples, False, "q"))
    self.assertEqual(_as_samples(self.read(path, key_type="I64").chunks()), samples)

  def test_headers_must_fit(self):
    good = _norm_bytes(_samples(3, 0), False, "I")
    for at, value, expected in (
        (0, 1, "byte 0 of the header: error_check, 1 if .*: expected 0, got 1"),
        (16, 2, "byte 16 of the header: label_dim: expected 1, got 2"),
        (24, 3, "byte 24 of the header: dense_dim: expected 2, got 3"),
        (32, 1, "byte 32 of the header: slot_num: expected 2, got 1"),
        (8, -1, "byte 8 of the header: number_of_records is -1")):
      data = good[:at] + struct.pack("<q", value) + good[at + 8:]
      with self.assertRaisesRegex(errors.DataError, "0.data: " + expected):
        self.read(self.list_of(data)).chunks()
    with self.assertRaisesRegex(errors.DataError, "60 bytes, expected a header of 64"):
      self.read(self.list_of(good[:60])).chunks()

  def broken(self, data, expected, with_sums=False, **kwargs):
    with self.assertRaisesRegex(errors.DataError, r"0\.data: " + expected):
      list(self.read(self.list_of(data), with_sums, **kwargs).chunks())

  def test_malformed_records_are_reported_with_their_place(self):
    samples = [(0., [1., 2.], [[5], [6]]) for _ in range(3)]
    good = _norm_bytes(samples, False, "I")
    # Records have 28 bytes: the second starts at 92, its first slot at 104.
    self.broken(good[:-1], "record 2, byte 120: the file ends within the record, but its "
                "header counts 3 records")
    self.broken(good + b"abc", "byte 148: 3 bytes follow the 3 records")
    wrong = good[:104] + struct.pack("<i", -1) + good[108:]
    self.broken(wrong, "record 1, byte 104: slot 0 has -1 keys, which do not fit")
    wrong = good[:104] + struct.pack("<i", 99) + good[108:]
    self.broken(wrong, "record 1, byte 92: the file ends within the record")
    wrong = good[:8] + struct.pack("<q", 4) + good[16:]
    self.broken(wrong, "record 3, byte 148: the file ends within the record")
    with_sums = _norm_bytes(samples, True, "I")
    # Records now have 33 bytes: the second starts at 97, its first slot at 113, its
    # checksum at 129.
    wrong = with_sums[:129] + bytes([with_sums[129] ^ 1]) + with_sums[130:]
    self.broken(wrong, r"record 1, byte 101: the checksum is \d+, but the record's bytes sum",
                True)
    wrong = with_sums[:97] + struct.pack("<i", 27) + with_sums[101:]
    self.broken(wrong, "record 1, byte 97: the record's length is 27", True)

    def with_count(count):
      record = bytearray(with_sums[101:129])
      record[12:16] = struct.pack("<i", count)
      return (with_sums[:101] + bytes(record) + bytes([sum(record) % 256]) +
              with_sums[130:])

    self.broken(with_count(-3), "record 1, byte 113: slot 0 has -3 keys", True)
    self.broken(with_count(99), "record 1, byte 113: slot 0 has 99 keys", True)
    self.broken(with_count(0), "record 1, byte 117: slot 1 has 5 keys", True)

  def test_damaged_files_never_end_in_another_error(self):
    random = np.random.RandomState(3)
    raised = 0
    for k in range(200):
      with_sums = bool(k % 2)
      data = bytearray(_norm_bytes(_samples(20, k, most=1 + 3 * (k % 5 > 1)), with_sums, "I"))
      if k % 3 == 0:
        data = data[:random.randint(64, len(data))]
      for at in random.randint(64, len(data), size=3) if len(data) > 64 else ():
        data[at] = random.randint(256)
      try:
        list(self.read(self.list_of(bytes(data)), with_sums).chunks())
      except errors.DataError as e:
        raised += 1
        self.assertRegex(str(e), r"0\.data: (record \d+, )?byte \d+")
    self.assertGreater(raised, 100)

  def test_keys_that_do_not_fit(self):
    writer = norm.Writer(self.create_tempfile().full_path, _data(slots=1), "I32")
    for key in (-1, 1 << 32):
      with self.assertRaisesRegex(errors.DataError, "do not fit input_key_type I32"):
        writer.add(batches.Chunk(np.zeros([1, 1]), np.zeros([1, 2]),
                                 [batches.Slot(np.array([key]), None)]))
    writer.close()


class RawTest(parameterized.TestCase):

  def test_errors_name_files_in_any_encoding(self):
    path = os.path.join(self.create_tempdir().full_path, os.fsdecode(b"caf\xe9\xef\xbc\x8c"))
    with self.assertRaises(errors.DataError) as caught:
      raw.Source(path, _data(2), 4, 2, None, 1).reader(
          [batches.InputLayout(0, 2, False)], repeat=False)
    self.assertIn("caf\\xe9\uff0c: cannot be read", str(caught.exception))
    self.assertEqual(str(errors.DataError(path + "\ud800")),
                     os.path.dirname(path) + "/caf\\udce9\uff0c\\ud800")

  def file(self, rows, kind="<i4"):
    path = self.create_tempfile().full_path
    np.array(rows).astype(kind).tofile(path)
    return path

  def source(self, path, samples, batch_size=2, seed=None, **kwargs):
    return raw.Source(path, _data(**kwargs), samples, batch_size, seed, threads=2)

  def test_integers(self):
    path = self.file([[1, 0, 7, 3, 4], [0, 1, 2, 0, 9], [1, 5, 5, 1, 1]])
    found = batches.joined(list(self.source(path, 3, sizes=[10, 20]).chunks()))
    self.assertEqual(found.labels.tolist(), [[1.], [0.], [1.]])
    np.testing.assert_allclose(found.dense, np.log([[1, 8], [2, 3], [6, 6]]), rtol=1e-6)
    np.testing.assert_array_equal(
        found.dense, numpy_readers.log1p([[0, 7], [1, 2], [5, 5]]))
    self.assertEqual([s.keys.tolist() for s in found.slots], [[3, 0, 1], [14, 19, 11]])

  def test_floats(self):
    rows = np.zeros([2, 5], "<i4")
    rows[:, 3:] = [[3, 4], [5, 6]]
    rows.view("<f4")[:, :3] = [[1., -2.5, .5], [0., 3., 1e30]]
    found = batches.joined(list(
        self.source(self.file(rows), 2, float_label_dense=True).chunks()))
    self.assertEqual(found.labels.tolist(), [[1.], [0.]])
    np.testing.assert_array_equal(found.dense,
                                  np.array([[-2.5, .5], [3., 1e30]], np.float32))
    self.assertEqual([s.keys.tolist() for s in found.slots], [[3, 5], [4, 6]])

  def test_shuffles_batches_anew_each_time(self):
    rows = [[k, 0, 0, k, k] for k in range(23)]
    path = self.file(rows)
    source = self.source(path, 23, batch_size=4, seed=3)
    orders = []
    for _ in range(2):
      labels = [c.labels[:, 0].astype(int).tolist() for c in source.chunks()]
      self.assertEqual(labels[-1], [20, 21, 22])
      self.assertCountEqual(labels[:-1], [[k, k + 1, k + 2, k + 3]
                                          for k in range(0, 20, 4)])
      orders.append(labels)
    self.assertNotEqual(orders[0], orders[1])
    again = self.source(path, 23, batch_size=4, seed=3)
    self.assertEqual([c.labels[:, 0].astype(int).tolist() for c in again.chunks()],
                     orders[0])

  def test_files_that_do_not_fit(self):
    path = self.file([[1, 0, 7, 3, 4], [0, 1, 2, 0, 9]])
    with self.assertRaisesRegex(errors.DataError, "40 bytes, expected 3 samples of 20 bytes: "
                                "1 labels, 2 dense features and 2 keys of 4 bytes"):
      self.source(path, 3).chunks()
    with self.assertRaisesRegex(errors.DataError, "record 1, byte 36: key 9 of slot 1 is not "
                                r"in \[0, 9\)"):
      list(self.source(path, 2, sizes=[4, 9]).chunks())
    path = self.file([[1, 0, 7, 3, 4], [0, 1, -2, -1, 9]])
    with self.assertRaisesRegex(errors.DataError, "record 1, byte 28: dense feature -2"):
      list(self.source(path, 2).chunks())
    path = self.file([[1, 0, 7, 3, 4], [0, 1, 2, -1, 9]])
    with self.assertRaisesRegex(errors.DataError, "record 1, byte 32: key -1 of slot 0"):
      list(self.source(path, 2).chunks())
    with self.assertRaisesRegex(errors.DataError, "no/file: cannot be read"):
      self.source("no/file", 2).chunks()

  @parameterized.parameters(False, True)
  def test_writes_what_it_reads(self, is_float):
    random = np.random.RandomState(0)
    rows = random.randint(0, 9, [10, 5]).astype("<i4")
    if is_float:
      rows.view("<f4")[:, :3] = random.randn(10, 3)
    path = self.file(rows)
    out = self.create_tempfile().full_path
    writer = raw.Writer(out, _data(float_label_dense=is_float))
    for chunk in self.source(path, 10, float_label_dense=is_float).chunks():
      writer.add(chunk)
    writer.close()
    with open(path, "rb") as f, open(out, "rb") as g:
      self.assertEqual(f.read(), g.read())

  @parameterized.parameters((None,), ([10, 20, 30],))
  def test_fixed_numbers_of_keys(self, sizes):
    counts, samples = [1, 3, 2], 7
    data = _data(slots=3, sizes=sizes, float_label_dense=True, sparse=[
        {"top": "keys", "nnz_per_slot": counts, "is_fixed_length": True, "slot_num": 3}])
    random = np.random.RandomState(1)
    keys = random.randint(0, 10, [samples, 6])
    rows = np.zeros([samples, 9], "<i4")
    rows[:, 3:] = keys
    rows.view("<f4")[:, :3] = random.randn(samples, 3)
    path = self.file(rows)
    moved = keys + np.repeat([0, 10, 30] if sizes else [0, 0, 0], counts)
    slots = np.split(moved, [1, 4], axis=1)
    source = raw.Source(path, data, samples, 3, None, 2)
    layouts = [batches.InputLayout(0, 3, False), batches.InputLayout(1, 2, True),
               batches.InputLayout(2, 1, False)]
    found = _all_of(source.reader(layouts, False))
    self.assertEqual([b.size for b in found], [3, 3, 1])
    at = 0
    for batch in found:
      mine = slice(at, at + batch.size)
      at += batch.size
      np.testing.assert_array_equal(batch.labels, rows.view("<f4")[mine, :1])
      self.assertEqual(batch.inputs[0].keys.tolist(), moved[mine].ravel().tolist())
      self.assertEqual(batch.inputs[0].splits.tolist(), np.cumsum(
          [0] + counts * batch.size).tolist())
      self.assertEqual(batch.inputs[1].keys.tolist(), np.concatenate(
          [s[mine].ravel() for s in slots[1:]]).tolist())
      self.assertEqual(batch.inputs[1].splits.tolist(),
                       [[n * k for k in range(batch.size + 1)] for n in (3, 2)])
      self.assertEqual(batch.inputs[2].keys.tolist(), slots[2][mine].ravel().tolist())
    if sizes:
      return
    out = self.create_tempfile().full_path
    writer = raw.Writer(out, data)
    for chunk in source.chunks():
      writer.add(chunk)
    writer.close()
    with open(path, "rb") as f, open(out, "rb") as g:
      self.assertEqual(f.read(), g.read())
    with self.assertRaisesRegex(errors.DataError, "expected 2 in slot 2, got 1 to 1"):
      writer.add(chunk._replace(slots=chunk.slots[:2] + [batches.Slot(
          chunk.slots[2].keys[:1], None)]))

  def test_what_it_cannot_hold(self):
    writer = raw.Writer(self.create_tempfile().full_path, _data(slots=1))
    ones = np.ones([2], np.int64)
    for keys, dense, expected in (
        (batches.Slot(ones, np.array([0, 0, 2])), 0., "one key per slot"),
        (batches.Slot(-ones, None), 0., r"keys in \[0, 2147483648\), got -1"),
        (batches.Slot(ones, None), .3, "expected integers, unless float_label_dense")):
      with self.assertRaisesRegex(errors.DataError, expected):
        writer.add(batches.Chunk(np.zeros([2, 1]), np.full([2, 2], dense), [keys]))
    writer.close()


def _all_of(read, most=None):
  """Returns copies of up to `most` batches of a reader, and closes it."""
  found = []
  while most is None or len(found) < most:
    batch = read.next()
    if batch is None:
      break
    found.append(batches.Batch(batch.size, batch.labels.copy(), batch.dense.copy(), [
        batches.Keys(k.keys.copy(), k.splits.copy()) for k in batch.inputs],
                               batch.global_size))
  read.close()
  return found


_LAYOUTS = {
    "sample": [batches.InputLayout(0, 3, False)],
    "slot": [batches.InputLayout(0, 3, True)],
    "both": [batches.InputLayout(0, 1, True), batches.InputLayout(1, 2, False)],
}


class AgainstNumPyTest(parameterized.TestCase):
  """Compares the library's batches with the readers in NumPy."""

  def compare(self, source, oracle, layouts, batch_size, repeat):
    for rank, ranks in ((0, 1), (0, 3), (2, 3)):
      most = 25 if repeat else None
      mine = _all_of(source().reader(layouts, repeat, rank, ranks), most)
      theirs = _all_of(reader.Reader(
          oracle().chunks, lambda chunks, size: batches.batch_of(
              batches.joined(chunks), layouts, size), batch_size, repeat, rank, ranks), most)
      self.assertLen(mine, len(theirs))
      for a, b in zip(mine, theirs):
        self.assertEqual((a.size, a.global_size), (b.size, b.global_size))
        for x, y in ((a.labels, b.labels), (a.dense, b.dense)) + tuple(
            pair for p, q in zip(a.inputs, b.inputs) for pair in zip(p, q)):
          self.assertEqual((x.dtype, x.shape), (y.dtype, y.shape))
          np.testing.assert_array_equal(x, y)

  @parameterized.product(with_sums=[False, True], key_type=["I32", "I64"], most=[1, 4],
                         layout=sorted(_LAYOUTS), repeat=[False, True])
  def test_norm(self, with_sums, key_type, most, layout, repeat):
    data = _data(3, check="Sum" if with_sums else "None")
    folder = self.create_tempdir().full_path
    path = folder + "/list.txt"
    with open(path, "w") as f:
      f.write("3\n0.data\n1.data\n2.data\n")
    for k, count in enumerate((40, 3, 51)):
      samples = _samples(count, k, most, 64 if key_type == "I64" else 32, 3)
      with open("%s/%d.data" % (folder, k), "wb") as f:
        f.write(_norm_bytes(samples, with_sums, "q" if key_type == "I64" else "I", 2, 3))
    for batch_size in (3, 200):
      self.compare(lambda: norm.Source(path, data, key_type, batch_size, 3),  # pylint: disable=cell-var-from-loop
                   lambda: numpy_readers.Norm(path, data, key_type),
                   _LAYOUTS[layout], batch_size, repeat)

  @parameterized.product(is_float=[False, True], seed=[None, 0, 2 ** 32 + 5],
                         layout=sorted(_LAYOUTS), repeat=[False, True])
  def test_raw(self, is_float, seed, layout, repeat):
    random = np.random.RandomState(1)
    rows = np.concatenate([random.randint(0, 1 << 20, [94, 3]),
                           random.randint(0, 50, [94, 3])], axis=1).astype("<i4")
    # Logarithms of small numbers come from a table.
    rows[:, 1] >>= random.randint(0, 20, 94)
    if is_float:
      rows.view("<f4")[:, :3] = random.randn(94, 3)
    path = self.create_tempfile().full_path
    rows.tofile(path)
    data = _data(3, sizes=[50, 60, 70], float_label_dense=is_float)
    for batch_size in (3, 16, 200):
      self.compare(lambda: raw.Source(path, data, 94, batch_size, seed, 3),  # pylint: disable=cell-var-from-loop
                   lambda: numpy_readers.Raw(path, data, batch_size, seed),  # pylint: disable=cell-var-from-loop
                   _LAYOUTS[layout], batch_size, repeat)


class KeptTest(parameterized.TestCase):
  """Tests cache_eval_data: cached batches of a Raw file are not read again."""

  def setUp(self):
    super().setUp()
    self.path = self.create_tempfile().full_path

  def write(self, samples, first=0):
    np.tile(np.arange(first, first + samples, dtype="<i4")[:, None], [1, 5]).tofile(self.path)

  def opener(self, samples, most, repeat, for_training=False):
    data = _data(2, kind="Raw", num_samples=samples, eval_num_samples=samples,
                 cache_eval_data=most)
    return sources.opener(data, "I64", 4, repeat, [batches.InputLayout(0, 2, False)], 0, 1,
                          for_training=for_training)

  def firsts(self, read, most):
    """Returns the first label of each of up to `most` batches."""
    found = []
    for _ in range(most):
      batch = read.next()
      if batch is None:
        break
      found.append(int(batch.labels[0, 0]))
    read.close()
    return found

  @parameterized.parameters(1, 2, 3, 9)
  def test_gives_the_same_batches_again(self, most):
    for samples in (10, 12):
      self.write(samples)
      for repeat in (False, True):
        opened = self.opener(samples, most, repeat)
        plain = self.opener(samples, 0, repeat)
        for taken in (2, 7, 1, 20):
          self.assertEqual(self.firsts(opened(self.path), taken),
                           self.firsts(plain(self.path), taken))

  def test_does_not_read_what_is_kept(self):
    self.write(12)
    opened = self.opener(12, 3, False)
    self.assertEqual(self.firsts(opened(self.path), 9), [0, 4, 8])
    before = os.stat(self.path)
    self.write(12, first=50)
    # The file has changed, but its size and time have not.
    os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    self.assertEqual(self.firsts(opened(self.path), 9), [0, 4, 8])
    # Now its time has changed.
    os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    read = opened(self.path)
    self.assertEqual(self.firsts(read, 9), [50, 54, 58])

  def test_training_data_is_not_kept(self):
    self.write(12)
    opened = self.opener(12, 3, False, for_training=True)
    self.assertIsInstance(opened(self.path), native.Reader)
    self.assertNotIsInstance(self.opener(12, 3, False)(self.path), native.Reader)

  def test_errors(self):
    self.write(11)
    with self.assertRaisesRegex(errors.DataError, "220 bytes, expected 12 samples"):
      self.opener(12, 3, False)(self.path)
    with self.assertRaisesRegex(errors.DataError, "no/file: cannot be read"):
      self.opener(12, 3, False)("no/file")


class MemoryTest(absltest.TestCase):
  """Tests that the arrays of a batch are the library's memory."""

  def reader(self, samples=64, batch_size=16):
    rows = np.tile(np.arange(samples, dtype="<i4")[:, None], [1, 5])
    path = self.create_tempfile().full_path
    rows.tofile(path)
    return raw.Source(path, _data(2), samples, batch_size, None, 1).reader(
        [batches.InputLayout(0, 2, False)], repeat=True)

  def test_arrays_stay_as_they_are_while_one_is_held(self):
    read = self.reader()
    held = [read.next() for _ in range(40)]
    read.close()
    for k, batch in enumerate(held):
      np.testing.assert_array_equal(batch.labels[:, 0], np.arange(16) + 16 * (k % 4))
      np.testing.assert_array_equal(batch.inputs[0].keys,
                                    np.repeat(np.arange(16) + 16 * (k % 4), 2))

  def test_memory_serves_again(self):
    read = self.reader()
    places = set()
    for _ in range(40):
      places.add(read.next().inputs[0].keys.ctypes.data)
    read.close()
    # At most the waiting batches, those in work, and the one held by the test.
    self.assertLessEqual(len(places), 8)

  def test_arrays_begin_where_tensorflow_takes_them_without_a_copy(self):
    read = self.reader()
    batch = read.next()
    for array in (batch.labels, batch.dense) + batch.inputs[0]:
      self.assertEqual(array.ctypes.data % 64, 0)
      self.assertTrue(array.flags.c_contiguous)
    read.close()

  def test_splits_of_samples_with_one_key_are_shared_and_cannot_be_written(self):
    read = self.reader()
    first, second = read.next().inputs[0].splits, read.next().inputs[0].splits
    self.assertEqual(first.ctypes.data, second.ctypes.data)
    self.assertFalse(first.flags.writeable)
    read.close()

  def test_closes_at_any_time_and_twice(self):
    for taken in (0, 1, 9):
      read = self.reader()
      for _ in range(taken):
        read.next()
      read.close()
      read.close()


if __name__ == "__main__":
  absltest.main()
