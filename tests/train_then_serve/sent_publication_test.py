# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of a publication reach the servers of a model by a producer."""

import os
import shutil
import time

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing

_DIM = 4
_PROBE = np.arange(40, dtype=np.int64)


class _Training(object):
  """A table whose rows without training are not zero."""

  def __init__(self, folder, partitions=None):
    v1 = tf.compat.v1
    self._partitions = partitions
    self.graph = tf.Graph()
    with self.graph.as_default():
      v1.train.get_or_create_global_step()
      self._ids = v1.placeholder(tf.int64, [None])
      table = self._table()
      rows = tf.nn.embedding_lookup(table, self._ids)
      self._train = v1.train.AdagradOptimizer(.5).minimize(
          tf.reduce_sum(rows ** 2), global_step=v1.train.get_global_step())
      self._probe = tf.nn.embedding_lookup(table, tf.constant(_PROBE))
      self._erase = [part.erase(tf.constant([1, 2], tf.int64)) for part in
                     (table if partitions else [table])]
      self.publisher = ev.publish.Publisher(folder, self._serving)
      self.publisher.build()
      self._saver = v1.train.Saver()
      self.session = v1.Session(graph=self.graph)
      self.session.run(v1.global_variables_initializer())

  def _table(self):
    partitioner = (tf.compat.v1.fixed_size_partitioner(self._partitions)
                   if self._partitions else None)
    return tf.get_embedding_variable("users/id", _DIM, partitioner=partitioner)

  def _serving(self):
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    return {"ids": ids}, {"rows": tf.nn.embedding_lookup(self._table(), ids)}

  def train(self, *ids):
    self.session.run(self._train, {self._ids: list(ids)})

  def erase(self):
    self.session.run(self._erase)

  def rows(self):
    return self.session.run(self._probe)

  def save(self, prefix):
    return self._saver.save(self.session, prefix)

  def restore(self, prefix):
    self._saver.restore(self.session, prefix)


class SentPublicationTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.models, self.updates = (os.path.join(self.folder, name)
                                 for name in ("models", "updates"))
    os.mkdir(self.updates)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def serve(self, training):
    """Starts a server with a table without the rows of training."""
    testing.write_table(os.path.join(self.folder, "t"), _PROBE, np.zeros([40, _DIM]))
    hps.start(testing.write_config(
        os.path.join(self.folder, "ps.json"), [testing.model("m", ["t"], [_DIM], most=1000)],
        supportlonglong=True,
        update_source={"type": "directory", "path": self.updates, "poll_timeout_ms": 20}))
    self.training = training

  def assert_served(self, among=slice(None)):
    """Waits until the rows are those of training."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      rows = hps.LookupLayer(model_name="m", table_id=0, emb_vec_size=_DIM,
                             emb_vec_dtype=tf.float32)(tf.constant(_PROBE))
      until = time.time() + 30
      while time.time() < until:
        if np.array_equal(session.run(rows)[among], self.training.rows()[among]):
          return
        time.sleep(.01)
      np.testing.assert_array_equal(session.run(rows)[among], self.training.rows()[among])

  @parameterized.parameters(None, 3)
  def test_full_versions_and_deltas(self, partitions):
    training = _Training(self.models, partitions)
    self.serve(training)
    with hps.Producer(type="directory", path=self.updates) as producer:
      sender = hps.PublicationSender(producer, "m", self.models, {"users/id": "table0"})
      self.assertEqual(sender.send(), 0)  # nothing is published
      training.train(*range(30))
      training.publisher.full(training.session)
      self.assertEqual(sender.send(), 30)
      self.assert_served(slice(0, 30))
      training.train(1, 35)
      training.publisher.delta(training.session)
      training.erase()
      training.train(3)
      training.publisher.delta(training.session)
      # 1 and 35; then 3, and the default rows of 1 and 2.
      self.assertEqual(sender.send(), 5)
      self.assert_served(slice(0, 30))
      self.assertEqual(sender.send(), 0)
      training.train(2)
      training.publisher.delta(training.session)
      self.assertEqual(sender.send(), 1)
      # All up to this step was sent.
      training.publisher.full(training.session)
      self.assertEqual(sender.send(), 0)
      training.train(4)
      training.publisher.delta(training.session)
      self.assertEqual(sender.send(), 1)
      self.assert_served(slice(0, 30))

  def test_a_full_version_without_a_delta_before_it(self):
    training = _Training(self.models)
    self.serve(training)
    training.train(*range(40))
    training.publisher.full(training.session)
    with hps.Producer(type="directory", path=self.updates) as producer:
      sender = hps.PublicationSender(producer, "m", self.models, {"users/id": "table0"})
      sender.send()
      training.erase()
      training.train(9)
      training.publisher.full(training.session)
      # 38 rows, and the default rows of 1 and 2.
      self.assertEqual(sender.send(), 40)
      self.assert_served()

  def test_a_delta_that_replaces_the_table(self):
    training = _Training(self.models)
    self.serve(training)
    training.train(*range(38))
    checkpoint = training.save(os.path.join(self.folder, "model.ckpt"))
    training.train(38, 39)
    training.publisher.full(training.session)
    with hps.Producer(type="directory", path=self.updates) as producer:
      sender = hps.PublicationSender(producer, "m", self.models, {"users/id": "table0"})
      self.assertEqual(sender.send(), 40)
      self.assert_served()
      training.restore(checkpoint)
      training.publisher.delta(training.session)
      # 38 rows, and the default rows of 38 and 39.
      self.assertEqual(sender.send(), 40)
      self.assert_served()

  def test_wrong_files_and_names(self):
    training = _Training(self.models)
    self.serve(training)
    training.train(*range(40))
    training.publisher.full(training.session)
    training.train(5)
    delta = training.publisher.delta(training.session)
    with hps.Producer(type="directory", path=self.updates) as producer:
      with self.assertRaisesRegex(ValueError, "has no embedding variable 'items'"):
        hps.PublicationSender(producer, "m", self.models, {"items": "table0"}).send()
      sender = hps.PublicationSender(producer, "m", self.models, {"users/id": "table0"})
      shutil.move(delta + ".index", delta + ".away")
      with self.assertRaisesRegex(ValueError, "delta 1 of version 1 .* is missing"):
        sender.send()
      shutil.move(delta + ".away", delta + ".index")
      self.assertEqual(sender.send(), 41)
      self.assert_served()
      # Without `tables` a table has the name of its folder.
      self.assertEqual(hps.PublicationSender(producer, "other", self.models).send(), 41)
      texts = []
      for name in sorted(os.listdir(self.updates)):
        with open(os.path.join(self.updates, name), "rb") as f:
          texts.append(f.read())
      self.assertIn(b"hps_et.other.users_id", b"".join(texts))


if __name__ == "__main__":
  absltest.main()
