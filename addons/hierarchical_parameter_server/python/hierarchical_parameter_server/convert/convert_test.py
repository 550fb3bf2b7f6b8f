# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts trained models and serves their rows."""

import contextlib
import io
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import convert
from hierarchical_parameter_server import testing
from hierarchical_parameter_server.commands import main
from hierarchical_parameter_server.checkpoint_format import packed_rows
from hierarchical_parameter_server.checkpoint_format import replaced_together
import embedding_variable
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.tools import testing as stored
import sparse_operation_kit as sok

_DIM = 4


def _trained(folder):
  """Trains; returns (ids, prediction, dense weights, folders with the saved files)."""
  random = np.random.RandomState(1)
  ids = random.randint(-50, 50, size=[64, 3]).astype(np.int64)
  labels = random.normal(size=[64, 1]).astype(np.float32)
  with tf.Graph().as_default():
    users = tf.get_embedding_variable("users", embedding_dim=_DIM)
    weights = tf.get_variable("w", [3 * _DIM, 1])
    rows = tf.nn.embedding_lookup(users, tf.constant(ids))
    prediction = tf.matmul(tf.reshape(rows, [-1, 3 * _DIM]), weights)
    loss = tf.losses.mean_squared_error(labels, prediction)
    step = tf.train.AdagradOptimizer(0.1).minimize(loss)
    items = tf.get_variable("items", [7, 2])
    saver = tf.train.Saver()
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      for _ in range(10):
        session.run(step)
      prefix = saver.save(session, os.path.join(folder, "model.ckpt"))
      sok.dump(os.path.join(folder, "dump"), users, session=session)
      found = session.run([prediction, weights, items])
  return [ids, prefix] + found


class ConvertTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def served(self, table, ids, weights):
    config = testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", [table], [_DIM])])
    with tf.Graph().as_default(), tf.Session() as session:
      rows = hps.LookupLayer("m", 0, _DIM, tf.float32, config)(tf.constant(ids))
      return session.run(tf.matmul(tf.reshape(rows, [-1, 3 * _DIM]), weights))

  def test_acceptance_04_a_trained_model_predicts_the_same(self):
    ids, prefix, prediction, weights, items = _trained(self.folder)
    out = os.path.join(self.folder, "tables")
    self.assertEqual(convert.checkpoint_tables(prefix),
                     {"users": (len(np.unique(ids)), _DIM)})
    written = convert.from_checkpoint(prefix, out, dense=["items"])
    self.assertEqual(written, {"users": (len(np.unique(ids)), _DIM), "items": (7, 2)})
    np.testing.assert_allclose(
        self.served(os.path.join(out, "users"), ids, weights), prediction, atol=1e-6)
    hps.stop()
    found = np.fromfile(os.path.join(out, "items", "emb_vector"), np.float32)
    np.testing.assert_array_equal(found.reshape([7, 2]), items)
    np.testing.assert_array_equal(
        np.fromfile(os.path.join(out, "items", "key"), np.int64), np.arange(7))
    # sok.dump's files give the same table.
    dumped = os.path.join(self.folder, "of_dump")
    written = convert.from_sok_dump(os.path.join(self.folder, "dump"), dumped)
    table, = written
    self.assertEqual(written[table], (len(np.unique(ids)), _DIM))
    np.testing.assert_allclose(
        self.served(os.path.join(dumped, table), ids, weights), prediction, atol=1e-6)

  def test_tables_in_parts(self):
    with tf.Graph().as_default(), tf.Session() as session:
      users = tf.get_embedding_variable(
          "users", embedding_dim=2, partitioner=tf.fixed_size_partitioner(3))
      rows = tf.nn.embedding_lookup(users, tf.range(100, dtype=tf.int64))
      step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(rows**2))
      session.run(tf.global_variables_initializer())
      session.run(step)
      expected = session.run(rows)
      prefix = tf.train.Saver().save(session, os.path.join(self.folder, "model"))
    self.assertEqual(convert.checkpoint_tables(prefix), {"users": (100, 2)})
    convert.from_checkpoint(prefix, self.folder)
    keys = np.fromfile(os.path.join(self.folder, "users", "key"), np.int64)
    found = np.fromfile(os.path.join(self.folder, "users", "emb_vector"), np.float32)
    np.testing.assert_array_equal(found.reshape([100, 2])[np.argsort(keys)], expected)

  def test_a_table_under_another_tables_name_is_no_slot(self):
    with tf.Graph().as_default(), tf.Session() as session:
      users = tf.get_embedding_variable("user", embedding_dim=2)
      hist = tf.get_embedding_variable("user/hist", embedding_dim=3)
      parts = tf.get_embedding_variable("user/hist/parts", embedding_dim=2,
                                        partitioner=tf.fixed_size_partitioner(2))
      loss = sum(tf.reduce_sum(tf.nn.embedding_lookup(v, tf.constant(ids, tf.int64))**2)
                 for v, ids in ((users, [1, 2]), (hist, [1, 2, 3]), (parts, [4, 5])))
      step = tf.train.AdamOptimizer(0.1).minimize(loss)
      session.run(tf.global_variables_initializer())
      session.run(step)
      prefix = tf.train.Saver().save(session, os.path.join(self.folder, "model"))
    sizes = {"user": (2, 2), "user/hist": (3, 3), "user/hist/parts": (2, 2)}
    self.assertEqual(convert.checkpoint_tables(prefix), sizes)
    self.assertEqual(convert.from_checkpoint(prefix, self.folder), sizes)
    # DeepRec's files have no default rows; nothing is stored under a slot.
    theirs = {n: t for n, t in stored.read(prefix).items() if "default_rows" not in n}
    stored.write(os.path.join(self.folder, "theirs"), theirs)
    self.assertEqual(convert.checkpoint_tables(os.path.join(self.folder, "theirs")), sizes)
    # If no table has slots either, the names are ambiguous: log a warning.
    bare = {n: t for n, t in theirs.items() if "Adam" not in n and "parts" not in n}
    stored.write(os.path.join(self.folder, "bare"), bare)
    with self.assertLogs("tensorflow", "WARNING") as logs:
      written = convert.from_checkpoint(os.path.join(self.folder, "bare"), self.folder)
    self.assertEqual(written, {"user": (2, 2)})
    self.assertIn("user/hist is taken for an optimizer's slot", logs.output[0])
    self.assertEqual(
        convert.from_checkpoint(os.path.join(self.folder, "bare"), self.folder,
                                ["user", "user/hist"]),
        {"user": (2, 2), "user/hist": (3, 3)})

  def test_two_tables_with_one_folder_name(self):
    prefix = os.path.join(self.folder, "model")
    stored.write(prefix, dict(stored.table("a/b", [1], [[1., 2.]]),
                              **stored.table("a_b", [2], [[3., 4.]])))
    out = os.path.join(self.folder, "tables")
    for first, other in (("a/b", "a_b"), ("a_b", "a/b")):
      convert.from_checkpoint(prefix, out, [first])
      with self.assertRaisesRegex(ValueError, "a_b/hps_sums are those of variable '%s', which "
                                  "has the same file name as '%s'" % (first, other)):
        convert.from_checkpoint(prefix, out, [other])
      self.assertEqual(convert.from_checkpoint(prefix, out, [first]), {first: (1, 2)})
      self.assertCountEqual(os.listdir(os.path.join(out, "a_b")),
                            ["key", "emb_vector", "hps_sums"])
      os.remove(os.path.join(out, "a_b", "hps_sums"))

  @parameterized.parameters("parallel_hash_map", "multi_process_hash_map")
  def test_a_killed_conversion_leaves_keys_with_their_rows(self, volatile):
    table = os.path.join(self.folder, "table")
    ids = np.arange(1, 6)
    versions = [(np.array([1, 2, 3, 4]) + k, (np.arange(1, 5) + k + 10. * k)[:, None])
                for k in (0, 1)]
    expected = [[1, 2, 3, 4, -1], [-1, 12, 13, 14, 15]]
    convert.write_table(table, *versions[0])
    config = testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", [table], [1], defaults=[-1.])], volatile_db={"type": volatile})
    hps.start(config)
    found = []
    with tf.Graph().as_default(), tf.Session() as session:
      rows = hps.LookupLayer("m", 0, 1, tf.float32)(tf.constant(ids, tf.int64))
      for kill_at in range(100):
        if not self._converts_until(table, versions[1], kill_at):
          break
        hps.reload_model("m")
        found.append(session.run(rows)[:, 0].tolist())
        # The next conversion is complete.
        convert.write_table(table, *versions[0])
        hps.reload_model("m")
        self.assertEqual(session.run(rows)[:, 0].tolist(), expected[0], kill_at)
        self.assertCountEqual([n for n in os.listdir(table) if "index" not in n],
                              ["key", "emb_vector", "hps_sums"])
    self.assertGreater(kill_at, 6)
    for rows in found:
      self.assertIn(rows, expected)
    self.assertEqual(found[0], expected[0])
    self.assertEqual(found[-1], expected[1])

  def _converts_until(self, table, version, kill_at):
    """Converts in a process that is killed at a system call; returns if it was killed."""
    child = os.fork()
    if not child:
      calls = []

      def counted(real):
        def call(*args):
          calls.append(real)
          if len(calls) > kill_at:
            os._exit(7)
          return real(*args)
        return call

      for name in ("replace", "fsync", "remove"):
        setattr(os, name, counted(getattr(os, name)))
      convert.write_table(table, *version)
      os._exit(0)
    return os.waitpid(child, 0)[1] != 0

  def test_files_that_do_not_belong_together(self):
    table = os.path.join(self.folder, "table")
    config = testing.write_config(os.path.join(self.folder, "ps.json"),
                                  [testing.model("m", [table], [2])])
    convert.write_table(table, [1, 2, 3], np.ones([3, 2]))
    with open(os.path.join(table, "emb_vector"), "rb") as f:
      old = f.read()
    convert.write_table(table, [2, 3, 4], np.full([3, 2], 2.))
    with open(os.path.join(table, "emb_vector"), "wb") as f:
      f.write(old)
    with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError,
        "emb_vector' has other content .*hps_sums.*remove hps_sums"):
      hps.start(config)
    self.assertRegex(hps.check(config)["errors"][0], "has other content")
    os.remove(os.path.join(table, "hps_sums"))
    hps.start(config)

  def test_legacy_files(self):
    np.arange(5, dtype=np.int64).tofile(os.path.join(self.folder, "v_keys.file"))
    rows = np.arange(15, dtype=np.float32)
    rows.tofile(os.path.join(self.folder, "v_values.file"))
    self.assertEqual(convert.from_legacy(self.folder, self.folder), {"v": (5, 3)})
    np.testing.assert_array_equal(
        np.fromfile(os.path.join(self.folder, "v", "emb_vector"), np.float32), rows)
    with open(os.path.join(self.folder, "v_values.file"), "ab") as f:
      f.write(b"1234")
    with self.assertRaisesRegex(ValueError, "16 floats are not a whole number of rows for 5 keys"):
      convert.from_legacy(self.folder, self.folder)
    # The existing table is unchanged.
    self.assertEqual(os.path.getsize(os.path.join(self.folder, "v", "key")), 40)
    self.assertCountEqual(os.listdir(os.path.join(self.folder, "v")),
                          ["key", "emb_vector", "hps_sums"])

  def test_sok_files_are_compared_with_their_sums(self):
    paths = [os.path.join(self.folder, "v_%s.file" % what)
             for what in ("keys", "values", "sums")]
    for k in (0, 1):
      writers = [replaced_together.Writer(path) for path in paths[:2]]
      writers[0].write((np.arange(3) + k).astype("<i8").tobytes())
      writers[1].write(np.full([3, 2], k, "<f4").tobytes())
      for writer in writers:
        writer.close()
      replaced_together.commit([(paths[2], "v", writers)])
      if not k:
        os.rename(paths[1], paths[1] + ".old")
    # The process was killed after it had replaced the sums.
    os.rename(paths[1], paths[1] + ".part")
    os.rename(paths[1] + ".old", paths[1])
    convert.from_legacy(self.folder, self.folder)
    np.testing.assert_array_equal(
        np.fromfile(os.path.join(self.folder, "v", "emb_vector"), "<f4"), np.ones(6))
    os.remove(paths[1] + ".part")
    with self.assertRaisesRegex(ValueError, "v_values.file has 24 bytes with the CRC-32"):
      convert.from_legacy(self.folder, self.folder)

  @parameterized.parameters("float16", "uint8")
  def test_rows_in_fewer_bytes(self, row_type):
    random = np.random.RandomState(1)
    keys = np.arange(1000) * 7
    # Rows whose sizes differ by orders of magnitude.
    rows = random.normal(size=[1000, 17]) * random.lognormal(0, 2, size=[1000, 1])
    folder = os.path.join(self.folder, "t")
    convert.write_table(folder, keys, rows)

    def served(folder):
      hps.stop()
      hps.start(testing.write_config(os.path.join(self.folder, "ps.json"), [
          testing.model("m", [folder], [17], most=1000, row_type_per_table=[row_type])]))
      with tf.Graph().as_default():
        layer = hps.LookupLayer(model_name="m", table_id=0, emb_vec_size=17,
                                emb_vec_dtype=tf.float32)
        found = layer(tf.constant(keys, tf.int64))
        with tf.compat.v1.Session() as session:
          return session.run(found)

    of_server = served(folder)  # rounds float32 rows
    self.assertEqual(convert.write_table(folder, keys, rows, row_type), (1000, 17))
    self.assertEqual(
        sorted(n for n in os.listdir(folder) if n.startswith("emb")), ["emb_vector_" + row_type])
    of_file = served(folder)
    np.testing.assert_array_equal(of_server.view(np.int32), of_file.view(np.int32))
    stored = np.fromfile(os.path.join(folder, "emb_vector_" + row_type), np.uint8)
    self.assertLen(stored, 1000 * {"float16": 36, "uint8": 24}[row_type])
    np.testing.assert_array_equal(
        packed_rows.unpack(stored.reshape([1000, -1]), row_type, 17), of_file)
    limits = {"float16": np.abs(rows) * 2.**-11 + 3e-8,
              "uint8": (rows.max(1) - rows.min(1))[:, None] / 510 * 1.01 + 6e-8}[row_type]
    self.assertTrue((np.abs(of_file - rows) <= limits).all())
    for bad in (np.nan, np.inf, -70000.):
      rows[13, 5] = bad
      with self.assertRaisesRegex(ValueError, "key 91: expected a row of finite .* " + row_type):
        convert.write_table(folder, keys, rows, row_type)
    np.testing.assert_array_equal(served(folder), of_file)
    convert.write_table(folder, keys, rows)
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "emb_vector', key 91: expected"):
      served(folder)
    rows[13, 5] = 0
    convert.write_table(folder, keys, rows)
    self.assertFalse(np.isnan(served(folder)).any())

  @parameterized.parameters(None, "users")
  def test_deeprecs_int8_tables(self, table):
    prefix = os.path.join(self.folder, "low")
    values = np.array([[1, -128], [127, 0], [-3, 5]], np.int8)
    scale = np.array([.5, .25], np.float32)

    def save(scale):
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tensors = {"users/int8_data-keys": np.array([7, -1, 5]),
                   "users/int8_data-values": values, "users/int8_scale": scale,
                   "items": np.ones([2, 3], np.float32)}
        session.run(tf.raw_ops.SaveV2(
            prefix=prefix, tensor_names=sorted(tensors), shape_and_slices=[""] * len(tensors),
            tensors=[tensors[name] for name in sorted(tensors)]))

    def converted():
      return convert.from_checkpoint(
          prefix, self.folder + "/out", table and [table], full_only=True)

    save(scale[:1])
    with self.assertRaisesRegex(ValueError, "users/int8_scale: expected 2 floats, .* got float32"):
      converted()
    save(scale)
    self.assertEqual(converted(), {"users": (3, 2)})
    self.assertEqual(convert.checkpoint_tables(prefix, full_only=True), {"users": (3, 2)})
    np.testing.assert_array_equal(
        np.fromfile(os.path.join(self.folder, "out", "users", "emb_vector"), np.float32),
        (values * scale).ravel())
    with self.assertRaisesRegex(ValueError, "no embedding variable 'other'; it has users"):
      convert.from_checkpoint(prefix, self.folder + "/out", ["other"], full_only=True)

  def test_the_command_converts_to_fewer_bytes(self):
    _, prefix, _, _, _ = _trained(self.folder)
    out = os.path.join(self.folder, "out")
    with contextlib.redirect_stdout(io.StringIO()):
      self.assertEqual(
          main.main(["convert", "checkpoint", prefix, out, "--row_type=uint8"]), 0)
      self.assertEqual(main.main(["convert", "sok-dump", os.path.join(self.folder, "dump"),
                                  out + "/dump", "--row_type=float16"]), 0)
    keys = np.fromfile(os.path.join(out, "users", "key"), np.int64)
    size = os.path.getsize(os.path.join(out, "users", "emb_vector_uint8"))
    self.assertEqual(size, len(keys) * (_DIM + 4))
    dumped, = os.listdir(out + "/dump")
    self.assertEqual(os.path.getsize(os.path.join(out, "dump", dumped, "emb_vector_float16")),
                     len(keys) * 2 * _DIM)

  @parameterized.parameters(
      (lambda f: convert.from_checkpoint(f + "/none", f), "no checkpoint at"),
      (lambda f: convert.write_table(f, [1], [[1.]], "int8"),
       "row_type: expected one of float32, float16, uint8, got 'int8'"),
      (lambda f: convert.from_sok_dump(f, f), "no file <table>-key"),
      (lambda f: convert.from_legacy(f, f), "no file <variable>_keys.file"),
      (lambda f: convert.from_legacy(f, f, "int16"), "expected int64 or uint32"),
      (lambda f: convert.write_table(f, [1, 2], [[1.]]), "expected 2 rows of floats"),
      (lambda f: convert.write_table(f, [1.5], [[1.]]), "integer keys, got float64"),
      (lambda f: convert.write_table(f, [], np.zeros([0, 2])), "without rows|integer"),
      (lambda f: convert.write_table(f, [1], np.zeros([1, 0])), "a table without rows"),
      (lambda f: convert.write_table(f, np.array([2**63], np.uint64), [[1.]]),
       "above the largest int64"),
  )
  def test_errors_are_named(self, call, message):
    with self.assertRaisesRegex(ValueError, message):
      call(self.folder)


class DeltasTest(parameterized.TestCase):
  """Incremental checkpoints are converted as a restore applies them."""

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.prefix = os.path.join(self.folder, "model")

  def written(self, table="users", **kwargs):
    """Converts; returns {key: row} of a table."""
    sizes = convert.from_checkpoint(self.prefix, self.folder + "/out", **kwargs)
    folder = os.path.join(self.folder, "out", table)
    keys = np.fromfile(os.path.join(folder, "key"), np.int64).tolist()
    rows = np.fromfile(os.path.join(folder, "emb_vector"), np.float32)
    rows = rows.reshape([len(keys), -1]).tolist()
    self.assertLen(set(keys), len(keys))
    self.assertEqual(sizes[table], (len(keys), len(rows[0])))
    self.assertEqual(
        convert.checkpoint_tables(self.prefix, kwargs.get("full_only", False))
        .get(table, sizes[table]), sizes[table])
    return dict(zip(keys, rows))

  def trained(self, parts=None, counter=None):
    """Saves a full checkpoint and two deltas; returns the rows after a restore."""
    with tf.Graph().as_default(), tf.Session() as session:
      users = tf.get_embedding_variable(
          "users", embedding_dim=2, partitioner=parts and tf.fixed_size_partitioner(parts),
          ev_option=embedding_variable.EmbeddingVariableOption(
              filter_option=counter and embedding_variable.CounterFilter(counter)))
      items = tf.get_variable("items", [3, 2])
      ids = tf.placeholder(tf.int64, [None])
      loss = tf.reduce_sum(tf.nn.embedding_lookup(users, ids)**2)
      step = tf.train.AdamOptimizer(0.1).minimize(loss + tf.reduce_sum(items**2))
      pieces = list(users) if parts else [users]
      erase = [p.erase(ids) for p in pieces]
      saver = tf.train.Saver(incremental_save_restore=True)
      session.run(tf.global_variables_initializer())
      for batch in ([1, 2, 3], [1, 2, -1001]):
        session.run(step, {ids: batch})
      saver.save(session, self.prefix)
      for end, gone in ((7, 2), (140, 3)):
        session.run(step, {ids: [1, end, end]})
        session.run(erase, {ids: [gone]})
        embedding_variable.save_incremental(saver, session, self.folder, end)
      session.run(tf.global_variables_initializer())
      saver.restore(session, self.prefix)
      exported = [session.run(p.export()[:2]) for p in pieces]
      rows = {}
      for keys, values in exported:
        rows.update(zip(keys.tolist(), values.tolist()))
      return rows, session.run(items)

  @parameterized.parameters({}, {"parts": 3}, {"counter": 2})
  def test_rows_are_those_of_a_restore(self, **kwargs):
    expected, items = self.trained(**kwargs)
    self.assertContainsSubset([1, 7, 140], expected)
    self.assertNoCommonElements([2, 3], expected)
    self.assertEqual(self.written(), expected)
    self.assertEqual(list(self.written("items", dense=["items"]).values()), items.tolist())
    full = self.written(full_only=True)
    self.assertIn(2, full)
    self.assertNotIn(140, full)
    out, err = io.StringIO(), io.StringIO()
    for source, flags, end in ((self.folder, [], " and its deltas to 140\n"),
                               (self.prefix, ["--full-only"], "\n")):
      with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        self.assertEqual(
            main.main(["convert", "checkpoint", source, self.folder + "/o"] + flags), 0)
      self.assertEndsWith(err.getvalue(), "reading %s%s" % (self.prefix, end))

  @parameterized.parameters(False, True)
  def test_ranks_parts(self, replaces):
    row = lambda *numbers: [[float(x)] * 2 for x in numbers]
    # Key k is on rank [0, 1, 1][k % 3]; rank 1 also holds a stale row of key 6.
    stored.write_chain(self.prefix, "users", [
        [dict(keys=[0, 3, 6], values=row(0, 3, 6)),
         dict(keys=[1, 2, 1001], values=row(1, 2, 1001))],
        [dict(keys=[3, 9], values=row(33, 9), erased=[0]),
         dict(keys=[2, 6], values=row(22, 66), erased=[9], replaces=replaces)],
        [dict(keys=[0], values=row(100)), dict(keys=[], values=[], erased=[2])],
    ], [0, 1, 1])
    expected = {0: 100., 3: 33., 6: 6., 9: 9.}
    if not replaces:
      expected.update({1: 1., 1001: 1001.})
    self.assertEqual(self.written(), {k: [x] * 2 for k, x in expected.items()})

  def test_damaged_deltas_are_refused_as_by_a_restore(self):
    self.trained()
    first = delta_chain.find(self.prefix)[0].prefix

    def refused(message):
      with self.assertRaisesRegex(tf.errors.DataLossError, message):
        delta_chain.find(self.prefix)
      with self.assertRaisesRegex(ValueError, first + ".*" + message):
        convert.from_checkpoint(self.prefix, self.folder + "/out")
      self.assertIn(2, self.written(full_only=True))

    with open(first + ".index", "rb") as f:
      index = f.read()
    os.rename(first + ".index", first + ".away")
    refused("is missing")
    with open(first + ".index", "wb") as f:
      f.write(index[:-5] + b"12345")
    refused("cannot be read")
    for path in (".index", ".data-00000-of-00001"):
      os.replace(first[:-1] + "2" + path, first + path)
    refused("continues something else")
    with open(first + ".index", "wb") as f:
      f.write(index)
    refused("cannot be read")
    os.rename(first + ".index", first[:-5] + "100000.index")
    refused("is missing, but .*100000 continues it")

  def test_an_older_checkpoint_is_converted_as_it_was_saved(self):
    self.trained()
    full = self.written(full_only=True)
    tf.train.update_checkpoint_state(self.folder, os.path.join(self.folder, "newer"))
    self.assertEqual(self.written(), full)


if __name__ == "__main__":
  absltest.main()
