# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that ranks train one model like one process does in NumPy, on the same batches."""

import os
import shutil
import sys
import tempfile

# Python adds the program's real folder to the path first, but the package in that
# folder of the source tree lacks the compiled reader.
sys.path[:] = [p for p in sys.path
               if p != os.path.dirname(os.path.realpath(__file__))]

# pylint: disable=wrong-import-position
import horovod.tensorflow as hvd
import tensorflow as tf
from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr import small_model as model
from hugectr import testing
from hugectr.training import metrics


class SessionUtest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    hvd.init()
    # Rank 0 creates the folder and sends its name to the others.
    folder = tempfile.mkdtemp() if hvd.rank() == 0 else ""
    cls.folder = cls.of_rank_0(folder)
    if hvd.rank() == 0:
      testing.write_parquet(cls.folder + "/train", model.PLANTED, 2, 50, seed=1)
      testing.write_parquet(cls.folder + "/val", model.PLANTED, 1, 31, seed=2)
      for localized in (False, True):
        model.write_start(localized, "%s/%d" % (cls.folder, localized))
    cls.of_rank_0("")

  @classmethod
  def tearDownClass(cls):
    cls.of_rank_0("")
    if hvd.rank() == 0:
      shutil.rmtree(cls.folder)
    super().tearDownClass()

  @classmethod
  def of_rank_0(cls, text):
    """Returns rank 0's text; waits for all ranks."""
    data = np.zeros([512], np.uint8)
    data[:len(text)] = np.frombuffer(text.encode(), np.uint8)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      found = session.run(hvd.broadcast(tf.constant(data), 0))
    return bytes(found).rstrip(b"\0").decode()

  def session(self, configuration, **solver):
    path = testing.write_json(self.create_tempfile().full_path, configuration)
    session = hugectr.Session(hugectr.solver_parser_helper(**dict(
        {"vvgpu": [list(range(hvd.size()))], "repeat_dataset": False}, **solver)), path)
    self.addCleanup(session.close)
    return session

  @parameterized.parameters(
      ("Adam", "Global", True), ("Adam", "Local", False), ("Nesterov", "Global", False))
  def test_ranks_train_as_one_process_does(self, kind, update_type, localized):
    start = "%s/%d" % (self.folder, localized)
    out = self.of_rank_0(self.create_tempdir().full_path + "/x")
    session = self.session(
        model.configuration(self.folder, kind, update_type, localized),
        batchsize=30 * hvd.size(), batchsize_eval=14 * hvd.size(),
        model_file=start + "dense", embedding_files=[start + "rows"],
        eval_metrics=["AUC", "HitRate", "NDCG", "SMAPE"])
    self.assertEqual(session.rank, hvd.rank())
    oracle = model.Oracle(kind, update_type, *self.start_values(start, localized))
    labels, dense, keys = model.samples(self.folder + "/train")
    session.start_data_reading()
    batch = 30 * hvd.size()
    for step, first in enumerate(range(0, len(labels), batch)):
      rate = .05 * (1 + step % 2)
      session.set_learning_rate(rate)
      self.assertTrue(session.train())
      at = slice(first, first + batch)
      loss = oracle.train(labels[at], dense[at], keys[at], rate, batch)
      self.assertAlmostEqual(session.get_current_loss(), loss, places=5)
      self.assertEqual(session.last_batch_size, len(labels[at]))
    self.assertFalse(session.train())
    session.download_params_to_files(out, 1)
    self.of_rank_0("")
    found = model.read_rows(out + "0_sparse_1.model", localized)
    self.assertEqual(found["key"].tolist(), list(range(model.SLOTS * model.SIZE)))
    np.testing.assert_allclose(found["row"], oracle.values["rows"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        np.fromfile(out + "_dense_1.model", np.float32),
        np.concatenate([oracle.values["W"].ravel(), oracle.values["b"]]),
        rtol=1e-4, atol=1e-5)
    self.check_evaluation(session, oracle)
    self.check_files(session, out, localized, kind, update_type)

  def test_a_regularizer_counts_once_over_ranks(self):
    start = self.folder + "/0"
    out = self.of_rank_0(self.create_tempdir().full_path + "/x")
    configuration = model.configuration(self.folder, "SGD")
    configuration["layers"][-1].update({"regularizer": "L2", "lambda": 3.})
    batch = 30 * hvd.size()
    session = self.session(configuration, batchsize=batch, batchsize_eval=batch,
                           model_file=start + "dense", embedding_files=[start + "rows"])
    oracle = model.Oracle("SGD", "Local", *self.start_values(start, False), l2=3.)
    labels, dense, keys = model.samples(self.folder + "/train")
    session.start_data_reading()
    session.set_learning_rate(1.)
    self.assertTrue(session.train())
    loss = oracle.train(labels[:batch], dense[:batch], keys[:batch], 1., batch)
    self.assertAlmostEqual(session.get_current_loss(), loss, places=5)
    session.download_params_to_files(out, 1)
    self.of_rank_0("")
    np.testing.assert_allclose(
        np.fromfile(out + "_dense_1.model", np.float32),
        np.concatenate([oracle.values["W"].ravel(), oracle.values["b"]]),
        rtol=1e-4, atol=1e-5)
    self.of_rank_0("")

  def start_values(self, start, localized):
    dense = np.fromfile(start + "dense", np.float32)
    return (model.read_rows(start + "rows", localized)["row"], dense[:-1, None],
            dense[-1:])

  def check_evaluation(self, session, oracle):
    labels, dense, keys = model.samples(self.folder + "/val")
    x = np.concatenate([oracle.values["rows"][keys].reshape([len(labels), -1]), dense],
                       axis=1)
    logits = (x @ oracle.values["W"] + oracle.values["b"])[:, 0]
    while session.eval():
      pass
    (name, value), *others = session.get_eval_metrics()
    self.assertEqual(name, "AUC")
    self.assertAlmostEqual(value, metrics.auc(labels, logits), places=6)
    probabilities = 1 / (1 + np.exp(-logits))
    for (name, value), function in zip(others, (metrics.hit_rate, metrics.ndcg,
                                                metrics.smape)):
      np.testing.assert_allclose(value, function(labels, probabilities), rtol=1e-4,
                                 err_msg=name)
    self.assertLen(others, 3)

  def check_files(self, session, out, localized, kind, update_type):
    """Loads the files of all ranks into a new session, and checks that it writes the same."""
    again = self.session(
        model.configuration(self.folder, kind, update_type, localized),
        batchsize=30 * hvd.size(), batchsize_eval=14 * hvd.size(), seed=5,
        model_file=out + "_dense_1.model", embedding_files=[out + "0_sparse_1.model"],
        dense_opt_states_file=out + "_opt_dense_1.model",
        sparse_opt_states_file=[out + "0_opt_sparse_1.model"])
    again.download_params_to_files(out + "again", 1)
    self.of_rank_0("")
    for end in ("_dense_1.model", "0_sparse_1.model", "_opt_dense_1.model",
                "0_opt_sparse_1.model"):
      with open(out + end, "rb") as f, open(out + "again" + end, "rb") as g:
        self.assertEqual(f.read(), g.read(), end)
    self.of_rank_0("")

  def test_nodes_of_one_device_each(self):
    batch = 10 * hvd.size()
    session = self.session(
        model.configuration(self.folder, "AdaGrad", "Local", True), batchsize=batch,
        batchsize_eval=batch, vvgpu=[[0]] * hvd.size())
    session.start_data_reading()
    losses = []
    while session.train():
      losses.append(session.get_current_loss())
    self.assertLen(losses, 10 // hvd.size())
    self.assertTrue(np.isfinite(losses).all())
    while session.eval():
      pass
    (_, value), = session.get_eval_metrics()
    self.assertBetween(value, 0, 1)

  def test_devices_are_as_many_as_ranks(self):
    with self.assertRaisesRegex(RuntimeError, "vvgpu names 1 device, but %d processes are "
                                "running.*horovodrun -np 1 python" % hvd.size()):
      self.session(model.configuration(self.folder), vvgpu=[[0]])


if __name__ == "__main__":
  absltest.main()
