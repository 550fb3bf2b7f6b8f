# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Problems that users of NVIDIA's plugin ran into, one case each: what raises, what
works.

Some cases are elsewhere: a second configuration, concurrent callers and moved saved
graphs in serving_test; planned bytes in server_test.cc; the GPU cache in the tests of
cache/ and of cached lookups.
"""

import os
import time

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import _lib
from hierarchical_parameter_server import testing

_ROWS, _DIM = 1000, 4
_INT64 = np.iinfo(np.int64)

_INVALID = tf.errors.InvalidArgumentError
_MISSING = tf.errors.NotFoundError

# Wrong lookups or starts: a name, the changed argument, the error, and its message.
_WRONG_CALLS = (
    ("model", dict(model="x"), _MISSING, "has the models 'm', got 'x'"),
    ("table_id", dict(table=1), _INVALID, "tables 0 to 0, got 1"),
    ("vector_size", dict(width=8), _INVALID, "rows of 4 floats, got 8"),
    ("too_many_keys", dict(ids=np.zeros(2049)), _INVALID, "at most 2048 ids .* got 2049"),
    ("key_type", dict(dtype=tf.int32), _INVALID, "expected int64 ids, got int32"),
    ("local_batch", dict(batch=1025), _INVALID, "max_batch_size .* is 1024"),
)

# Changes to the model's section of a configuration.
_WRONG_MODELS = (
    ("devices_with_gaps", dict(deployed_device_list=[0, 2]),
     r"deployed_device_list: expected the numbers 0 to N - 1, each once; got \[0, 2\]"),
    ("no_devices", dict(deployed_device_list=[]), "deployed_device_list: expected the numbers"),
    ("batch_0", dict(max_batch_size=0), "max_batch_size: expected an integer from 1"),
    ("widths", dict(embedding_vecsize_per_table=[4, 4]),
     "embedding_vecsize_per_table: expected one item"),
    ("names", dict(embedding_table_names=["a", "b"]), "embedding_table_names: expected one item"),
    ("no_hotness", dict(maxnum_catfeature_query_per_table_per_sample=None),
     "maxnum_catfeature_query_per_table_per_sample: is required"),
    ("misspelt", dict(gpucachper=1.), "gpucachper: unknown key; was 'gpucacheper' meant"),
    ("share_above_1", dict(gpucacheper=2.), "gpucacheper: expected a number from 0 to 1, got 2"),
    ("fp8", dict(fp8_quant=True), "fp8_quant: expected false"),
    ("remote_folder", dict(sparse_files=["s3://bucket/t"]), "expected a folder of this machine"),
)

# Changes to the rest of a configuration.
_WRONG_PARTS = (
    ("type", dict(volatile_db={"type": "hash_mop"}), "volatile_db.type: expected one of"),
    ("disabled_for_good", dict(persistent_db={}), "persistent_db.type: is required"),
    ("path", dict(persistent_db={"type": "rocks_db"}), "persistent_db.path: is required"),
    ("part_without_the_rest", dict(volatile_db={"initial_cache_rate": .5}),
     "initial_cache_rate: without a persistent_db"),
    ("memory_that_nothing_fills", dict(volatile_db={"initialize_after_startup": False}),
     "initialize_after_startup: false leaves"),
    ("filter", dict(update_source={"type": "directory", "path": "."},
                    volatile_db={"update_filters": ["("]}),
     r"update_filters: '\(' is not a regular expression"),
    ("no_filter", dict(volatile_db={"update_filters": []}), "expected one pattern at least"),
    ("brokers", dict(update_source={"type": "kafka_message_queu"}),
     "update_source.type: expected one of"),
)


class TrapsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.rows = np.random.RandomState(3).normal(size=[_ROWS, _DIM]).astype(np.float32)
    self.write(np.arange(_ROWS))

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def write(self, keys):
    testing.write_table(os.path.join(self.folder, "t"), keys, self.rows[:len(keys)])

  def model(self, **more):
    made = testing.model("m", ["t"], [_DIM], [-1.], most=2, **more)
    return {k: v for k, v in made.items() if v is not None}

  def config(self, model=None, **more):
    return testing.write_config(
        os.path.join(self.folder, "ps.json"), [model or self.model()], **more)

  def lookup(self, ids, model="m", table=0, width=_DIM, path="", dtype=tf.int64, batch=1):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      layer = hps.LookupLayer(model, table, width, tf.float32, path, batch)
      return session.run(layer(tf.constant(ids, dtype)))

  def table(self):
    return hps.metrics()["models"][0]["tables"][0]

  # Errors that upstream only logs, and keys that it does not check.

  @parameterized.named_parameters(*_WRONG_CALLS)
  def test_a_wrong_call_raises(self, call, error, message):
    path = self.config()
    with self.assertRaisesRegex(error, "(?s)" + message):
      self.lookup(**dict(dict(ids=[1], path=path), **call))
    np.testing.assert_array_equal(self.lookup([1], path=path), self.rows[[1]])

  @parameterized.named_parameters(*_WRONG_MODELS)
  def test_a_wrong_model_raises(self, change, message):
    with self.assertRaisesRegex(_INVALID, message):
      hps.start(self.config(self.model(**change)))
    with self.assertRaises(tf.errors.FailedPreconditionError):
      hps.metrics()

  @parameterized.named_parameters(*_WRONG_PARTS)
  def test_a_wrong_part_raises(self, change, message):
    with self.assertRaisesRegex(_INVALID, message):
      hps.start(self.config(**change))
    with self.assertRaises(tf.errors.FailedPreconditionError):
      hps.metrics()

  def test_files_of_another_number_of_rows_raise(self):
    self.rows[:10].tofile(os.path.join(self.folder, "t", "emb_vector"))
    with self.assertRaisesRegex(_INVALID, r"emb_vector.*16000 bytes.*got 160"):
      hps.start(self.config())

  def test_a_batch_that_replicas_cannot_share_raises(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      init = _lib.load().hps_init(
          ps_config_file=self.config(), num_replicas=3, global_batch_size=100)
      with self.assertRaisesRegex(_INVALID, "a multiple of the 3 replicas, got 100"):
        session.run(init)

  # Keys that upstream does not read, or whose default differs from its documents.

  def test_supportlonglong_and_names_have_the_documented_defaults(self):
    hps.start(self.config(self.model(embedding_table_names=None)))
    self.assertEqual(self.table()["tag"], "hps_et.m.sparse_embedding1")
    np.testing.assert_array_equal(self.lookup([2**40, 7]), [[-1] * _DIM, self.rows[7]])

  def test_comments_as_in_upstreams_samples(self):
    path = self.config()
    with open(path) as f:
      text = f.read()
    with open(path, "w") as f:
      f.write("// a server\n" + text.replace('"models":', '/* all */ "models": // one\n'))
    np.testing.assert_array_equal(self.lookup([1], path=path), self.rows[[1]])

  def test_a_volatile_tier_without_a_type_has_the_default_type(self):
    hps.start(self.config(volatile_db={"num_partitions": 2}))
    self.assertEqual(self.table()["volatile"]["rows"], _ROWS)
    self.assertIn("volatile_db.type: is not given", " ".join(hps.notes()))

  def test_lookups_are_exact_by_default(self):
    hps.start(self.config())
    for _ in range(2):
      np.testing.assert_array_equal(self.lookup(np.arange(_ROWS)), self.rows)
    self.assertEqual(self.table()["defaults"], 0)

  @parameterized.parameters(0., .3, .8, 1.)
  def test_initial_cache_rate_is_the_share_of_rows_loaded(self, rate):
    hps.start(self.config(
        volatile_db={"type": "hash_map", "initial_cache_rate": rate},
        persistent_db={"type": "mapped_files"}))
    self.assertEqual(self.table()["volatile"]["rows"], rate * _ROWS)
    np.testing.assert_array_equal(self.lookup(np.arange(_ROWS)), self.rows)

  def test_initialize_after_startup_is_read(self):
    hps.start(self.config(
        volatile_db={"type": "hash_map", "initialize_after_startup": False,
                     "cache_missed_embeddings": True},
        persistent_db={"type": "mapped_files"}))
    self.assertEqual(self.table()["volatile"]["rows"], 0)
    np.testing.assert_array_equal(self.lookup([3, 5]), self.rows[[3, 5]])
    self.assertEqual(self.table()["from_persistent"], 2)

  def pushed_from_a_folder(self, **memory):
    """Returns the served row of key 1, some time after an update of it was sent."""
    updates = os.path.join(self.folder, "updates")
    with hps.Producer(type="directory", path=updates) as producer:
      producer.send("m", "table0", [1], np.full([1, _DIM], 7))
    hps.start(self.config(
        volatile_db=dict(memory, type="hash_map"),
        update_source={"type": "directory", "path": updates, "poll_timeout_ms": 10}))
    until = time.time() + (.5 if memory else 30)
    while time.time() < until:
      row = self.lookup([1])[0]
      if (row == 7).all():
        break
      time.sleep(.02)
    return row

  def test_updates_come_to_every_model_unless_filters_say_otherwise(self):
    np.testing.assert_array_equal(self.pushed_from_a_folder(), [7] * _DIM)
    self.assertNotIn("update_filters", " ".join(hps.notes()))

  def test_a_filter_that_matches_no_model_is_noted(self):
    row = self.pushed_from_a_folder(update_filters=["^hps_.+$"])
    np.testing.assert_array_equal(row, self.rows[1])
    self.assertIn("volatile_db.update_filters: no model of this file",
                  " ".join(hps.notes()))

  def test_a_row_that_is_pushed_is_seen_by_the_next_lookup(self):
    hps.start(self.config())
    self.lookup([1])
    hps.push_rows("m", "table0", [1, 5000], np.full([2, _DIM], 3))
    np.testing.assert_array_equal(self.lookup([1, 5000]), np.full([2, _DIM], 3))

  # Keys, defaults and batches.

  def test_the_smallest_and_largest_int64_are_keys(self):
    ends = [_INT64.max, _INT64.min, -1, 0]
    path = self.config()
    np.testing.assert_array_equal(
        self.lookup(ends, path=path), [[-1] * _DIM] * 3 + [self.rows[0]])
    hps.stop()
    self.write(np.array(ends[:3]))
    np.testing.assert_array_equal(
        self.lookup(ends + [7], path=path), list(self.rows[:3]) + [[-1] * _DIM] * 2)

  def test_the_largest_key_of_32_bits_is_a_key_as_others(self):
    self.write(np.array([-1, 5]))
    path = self.config(supportlonglong=False)
    np.testing.assert_array_equal(
        self.lookup([-1, 2**31 - 1, -2**31, 5], path=path, dtype=tf.int32),
        [self.rows[0], [-1] * _DIM, [-1] * _DIM, self.rows[1]])

  @parameterized.parameters("dynamic", "static", "uvm", "stochastic")
  def test_the_default_value_is_the_tables_for_every_kind_of_cache(self, kind):
    path = self.config(self.model(embedding_cache_type=kind, gpucacheper=1.))
    for _ in range(2):  # looking up an unknown key must not store it
      np.testing.assert_array_equal(self.lookup([5000, 1], path=path),
                                    [[-1] * _DIM, self.rows[1]])
    self.assertEqual(self.table()["defaults"], 2)
    hps.push_rows("m", "table0", [5000], np.full([1, _DIM], 3))
    np.testing.assert_array_equal(self.lookup([5000]), [[3] * _DIM])

  def test_empty_samples_keep_the_batch(self):
    lists = [[], [1, 2], [], [3], [], []]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      layer = hps.SparseLookupLayer("m", 0, _DIM, tf.float32, self.config())
      rows = session.run(layer(tf.ragged.constant(lists, tf.int64), None, combiner="sum"))
    np.testing.assert_allclose(
        rows, [self.rows[row].sum(axis=0) for row in lists], rtol=1e-6)

  def test_a_table_of_one_float_takes_little_memory(self):
    rows = np.arange(50000, dtype=np.float32)[:, None]
    testing.write_table(os.path.join(self.folder, "thin"), np.arange(len(rows)), rows)
    thin = testing.model("m", ["thin"], [1])
    hps.start(self.config(thin))
    self.assertLess(self.table()["volatile"]["host_bytes"], 1.2 * (8 + 4) * len(rows))

  # Programs.

  def test_ops_have_names_of_their_own(self):
    ops = [name for name in dir(_lib.load()) if name.startswith("hps_")]
    self.assertContainsSubset({"hps_init", "hps_lookup"}, ops)
    with tf.Graph().as_default() as graph:
      hps.LookupLayer("m", 0, _DIM, tf.float32, self.config())(tf.constant([1], tf.int64))
      ours = {op.type for op in graph.get_operations()} - {"Const"}
    self.assertEqual(ours, {"HpsInit", "HpsLookup"})

  def test_no_gpu_is_needed_however_many_are_named(self):
    path = self.config(self.model(deployed_device_list=[0, 1, 2]))
    np.testing.assert_array_equal(self.lookup([1], path=path), self.rows[[1]])


if __name__ == "__main__":
  absltest.main()
