# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.dump, sok.load and sok.incremental_model_dump over ranks.

  horovodrun -np 2 -H localhost:2 python dump_load_utest.py
"""

import datetime
import os
import shutil
import tempfile

from absl.testing import absltest
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from embedding_variable.ops import checkpoint_ops
from sparse_operation_kit import experiment as sok
from sparse_operation_kit.exchange import collectives
from sparse_operation_kit.files import dump_format
from sparse_operation_kit.files import dump_load
from sparse_operation_kit.files import table_files

_train = tf.compat.v1.train
_ROWS = 23
_VALUE = np.random.RandomState(3).normal(size=[_ROWS, 3]).astype(np.float32)
_KEYS = np.arange(_ROWS) * 10 ** 12 - 5


class _Model(object):
  """Tables of all placements, trained by Adagrad."""

  def __init__(self):
    last = hvd.size() - 1
    self.variables = [
        sok.DynamicVariable(3, "1", name="dynamic"),
        sok.DynamicVariable(3, "1", name="local", mode="localized:%d" % last),
        sok.Variable(_VALUE, name="static"),
        sok.Variable(_VALUE, name="static_local", mode="localized:0"),
    ]
    self.optimizer = sok.OptimizerWrapper(_train.AdagradOptimizer(.1))
    keys = [_KEYS, _KEYS, np.arange(_ROWS), np.arange(_ROWS)]
    # Each rank uses other keys; together they use all.
    outputs = [sok.all2all_dense_embedding(v, k[hvd.rank()::hvd.size()])
               for v, k in zip(self.variables, keys)]
    gradients = tf.gradients([tf.reduce_sum(o ** 2) for o in outputs], self.variables)
    self.train = self.optimizer.apply_gradients(zip(gradients, self.variables))
    self.everything = [sok.all2all_dense_embedding(v, k)
                       for v, k in zip(self.variables, keys)]
    self.initialize = tf.compat.v1.global_variables_initializer()


class DumpLoadTest(absltest.TestCase):

  def setUp(self):
    super(DumpLoadTest, self).setUp()
    # One folder for all ranks.
    path = tempfile.mkdtemp() if hvd.rank() == 0 else ""
    self._folder = collectives.channel("test").gather_text(path)[0]
    self.addCleanup(self._remove)

  def _remove(self):
    collectives.channel("test").gather_text("done")
    if hvd.rank() == 0:
      shutil.rmtree(self._folder)

  def _write(self, name, kind, array):
    if hvd.rank() == 0:
      writer = dump_format.Writer(os.path.join(self._folder, name), kind, array.dtype)
      writer.append(array)
      writer.close()
      os.replace(writer.path + ".part", writer.path)
    collectives.channel("test").gather_text("written")

  def test_training_goes_on(self):
    before, dump_load._PIECE_BYTES = dump_load._PIECE_BYTES, 50  # several chunks
    self.addCleanup(setattr, dump_load, "_PIECE_BYTES", before)
    with tf.Graph().as_default():
      model = _Model()
      with tf.compat.v1.Session() as session:
        session.run(model.initialize)
        for _ in range(2):
          session.run(model.train)
        sok.dump(self._folder, model.variables, model.optimizer, session)
        session.run(model.train)
        expected = session.run(model.everything)
      with tf.compat.v1.Session() as session:
        session.run(model.initialize)
        sok.load(self._folder, model.variables, model.optimizer, session)
        session.run(model.train)
        for found, rows in zip(session.run(model.everything), expected):
          np.testing.assert_array_equal(found, rows)
        sizes = session.run([v.total_count()[0] for v in model.variables])
      for i, v in enumerate(model.variables):
        mine = len(range(hvd.rank(), _ROWS, hvd.size()))
        if i == 0:
          mine = sum(k % hvd.size() == hvd.rank() for k in _KEYS.tolist())
        if v.target_gpu != -1:
          mine = _ROWS if v.target_gpu == hvd.rank() else 0
        self.assertEqual(sizes[i], mine)

  def test_files(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      model = _Model()
      session.run(model.initialize)
      session.run(model.train)
      sok.dump(self._folder, model.variables, model.optimizer, session)
      rows = session.run(model.everything)
    names = ["dynamic_0", "local_0", "static_0", "static_local_0"]
    self.assertEqual(sorted(os.listdir(self._folder)), sorted(
        [n + "-" + kind for n in names
         for kind in ("key", "weight", "Adagrad-accumulator", "sums")] +
        [n + "-default_rows" for n in names[:2]]))
    by_rank = [np.arange(r, _ROWS, hvd.size()) for r in range(hvd.size())]
    dynamic = [np.sort(_KEYS[_KEYS % hvd.size() == r]) for r in range(hvd.size())]
    orders = [np.concatenate(dynamic), np.sort(_KEYS), np.concatenate(by_rank),
              np.arange(_ROWS)]
    for i, (name, order) in enumerate(zip(names, orders)):
      path = os.path.join(self._folder, name)
      keys = dump_format.open_array(path + "-key", dump_format.KEYS)
      self.assertEqual(keys.dtype, np.uint64 if i == 3 else np.int64)
      np.testing.assert_array_equal(keys.astype(np.int64), order)
      places = (order + 5) // 10 ** 12 if i < 2 else order
      np.testing.assert_array_equal(
          dump_format.open_array(path + "-weight", dump_format.ROWS).reshape(-1, 3),
          rows[i][places])

  def test_keys_without_a_row_read_the_same_rows_on_all_ranks(self):
    channel = collectives.channel("test")

    def rows_of(seed):
      tf.compat.v1.set_random_seed(seed)
      if hvd.rank():
        tf.constant(0)  # the graphs of the ranks may differ
      made = [
          sok.DynamicVariable(2, "random", name="v"),
          sok.DynamicVariable(2, "uniform", name="w", mode="localized:0"),
          tf.get_embedding_variable("x", embedding_dim=2),
          tf.get_embedding_variable("y", embedding_dim=2),
          tf.get_embedding_variable(
              "z", embedding_dim=2, initializer=tf.random_normal_initializer(seed=5)),
      ]
      session.run(tf.compat.v1.global_variables_initializer())
      return made, [checkpoint_ops.default_rows(v.handle) for v in made]

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      made, rows = rows_of(None)
      found = session.run(rows)
      for mine in found:
        self.assertLen(mine, 4096)
        for theirs in channel.gather(mine):
          np.testing.assert_array_equal(theirs, mine)
      self.assertLen({mine.tobytes() for mine in found}, 5)
      sok.dump(self._folder, made[:3], session=session)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      # Variables with a seed keep it: x and y that of the graph, z its own.
      made, rows = rows_of(3)
      seeded = session.run(rows)
      for before, after in zip(found[:4], seeded):
        self.assertFalse(np.array_equal(before, after))
      np.testing.assert_array_equal(
          seeded[4], session.run(tf.random_normal_initializer(seed=5)([4096, 2])))
      sok.load(self._folder, made[:3], session=session)
      for before, after in zip(found[:3] + seeded[3:], session.run(rows)):
        np.testing.assert_array_equal(before, after)

  def test_from_another_number_of_ranks(self):
    # The files look as if five ranks had written them.
    order = np.concatenate([np.arange(r, _ROWS, 5) for r in range(5)])
    for name in ("static_0", "static_local_0"):
      self._write(name + "-key", dump_format.KEYS, order)
      self._write(name + "-weight", dump_format.ROWS, _VALUE[order] * 2)
    self._write("dynamic_0-key", dump_format.KEYS, order - 9)
    self._write("dynamic_0-weight", dump_format.ROWS, _VALUE[order])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      variables = [
          sok.DynamicVariable(3, "1", name="dynamic"), sok.Variable(_VALUE, name="static"),
          sok.Variable(_VALUE, mode="localized:%d" % (hvd.size() - 1), name="static_local"),
      ]
      sok.load(self._folder, variables, session=session)
      keys = [np.arange(_ROWS) - 9, np.arange(_ROWS), np.arange(_ROWS)]
      rows = session.run(
          [sok.all2all_dense_embedding(v, k) for v, k in zip(variables, keys)])
      for found, expected in zip(rows, (_VALUE, _VALUE * 2, _VALUE * 2)):
        np.testing.assert_array_equal(found, expected)

  def test_a_failure_is_one_on_all_ranks(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(3, name="v")
      w = sok.DynamicVariable(3, name="w")
      session.run(tf.compat.v1.global_variables_initializer())
      # Only rank 0 writes; its write fails.
      if hvd.rank() == 0:
        os.makedirs(self._folder + "/w_0-weight.part")
      with self.assertRaisesRegex((OSError, RuntimeError),
                                  "w_0-weight" if hvd.rank() == 0 else "rank 0 failed"):
        sok.dump(self._folder, [v, w], session=session)
      self.assertFalse(os.path.exists(self._folder + "/v_0-key"))
      with self.assertRaisesRegex(ValueError, "cannot be read"):
        sok.load(self._folder, [v, w], session=session)
      if hvd.size() > 1:
        with self.assertRaisesRegex(ValueError, "expected the same on all ranks"):
          sok.dump(self._folder, [v] if hvd.rank() else [w], session=session)
        folder = self._folder if hvd.rank() else self._folder + "/x"
        with self.assertRaisesRegex(ValueError, "expected the same on all ranks"):
          sok.load(folder, v, session=session)

  def test_incremental_dump_is_the_same_on_all_ranks(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, "1", name="v")
      ids = tf.compat.v1.placeholder(tf.int64, [None])
      train = sok.SGD(1.).minimize(tf.reduce_sum(sok.all2all_dense_embedding(v, ids)))
      session.run(tf.compat.v1.global_variables_initializer())
      now = table_files.now()
      old = np.array([k for k in range(6) if k % hvd.size() == hvd.rank()])
      session.run(checkpoint_ops.import_table(
          v.handle, old, np.ones([len(old), 1]), np.full(len(old), now - 60),
          tf.zeros([0], tf.int64)))
      session.run(train, {ids: [hvd.rank(), 10]})
      since = datetime.datetime.utcfromtimestamp(now - 30)
      keys, values = sok.incremental_model_dump([v], since, session)
      np.testing.assert_array_equal(keys[0], list(range(hvd.size())) + [10])
      np.testing.assert_array_equal(values[0][:, 0], [0] * hvd.size() + [1 - hvd.size()])


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
