# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the schedule, the solver and the metrics, which need no graph."""

import itertools
import math
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import embedding_variable
from hugectr.config import errors
from hugectr.training import learning_rate
from hugectr.training import metrics
from hugectr.training import solver
from hugectr.training import sparse_files


class LearningRateTest(parameterized.TestCase):

  # base, warmup, decay_start, decay_steps, power, end; {step: rate}.
  @parameterized.parameters(
      ((0.1,), {1: 0.1, 2: 0.1, 1000: 0.1}),
      ((1.0, 4), {1: 0.25, 2: 0.5, 4: 1.0, 5: 1.0, 900: 1.0}),
      ((1.0, 2, 4, 4), {1: 0.5, 2: 1.0, 3: 1.0, 4: 1.0, 5: 0.5625, 6: 0.25, 7: 0.0625,
                        8: 0.0, 9: 0.0}),
      ((1.0, 2, 4, 4, 1.0, 0.3), {5: 0.75, 6: 0.5, 7: 0.3, 8: 0.3, 9: 0.3}),
      ((2.0, 6, 3, 2), {3: 1.0, 6: 2.0, 7: 0.0}),  # still rising when it should decay
      ((0.0,), {1: 0.0, 5: 0.0}),
      ((24.0, 8000, 48000, 24000, 2.0, 0.0),
       {1: 0.003, 8000: 24.0, 48000: 24.0, 60000: 6.0, 72000: 0.0, 72001: 0.0}))
  def test_schedule(self, arguments, expected):
    scheduler = learning_rate.LearningRateScheduler(*arguments)
    self.assertEqual((scheduler.get_step(), scheduler.get_lr()), (0, 0.0))
    for step in range(1, max(expected) + 1):
      rate = scheduler.get_next()
      if step in expected:
        self.assertAlmostEqual(rate, expected[step], msg=str(step))
        self.assertEqual((scheduler.get_step(), scheduler.get_lr()), (step, rate))

  @parameterized.parameters(
      dict(base_lr=-1), dict(warmup_steps=0), dict(decay_steps=0), dict(decay_power=0.5),
      dict(end_lr=-0.1), dict(decay_start=-1), dict(warmup_steps=1.5),
      dict(base_lr="a"), dict(base_lr=float("nan")), dict(warmup_steps=True))
  def test_refuses(self, **wrong):
    name, = wrong
    with self.assertRaisesRegex(ValueError, "LearningRateScheduler: %s: expected" % name):
      learning_rate.LearningRateScheduler(**dict({"base_lr": 1.0}, **wrong))


class SolverTest(parameterized.TestCase):

  def test_defaults_are_those_of_version_2(self):
    found = solver.solver_parser_helper()
    self.assertEqual((found.seed, found.max_eval_batches, found.batchsize,
                      found.batchsize_eval, found.vvgpu, found.model_file,
                      found.embedding_files, found.repeat_dataset, found.num_epochs,
                      found.max_iter, found.i64_input_key),
                     (0, 100, 16384, 16384, [[0]], "", [], False, 1, 10000, False))
    self.assertEqual(solver.solver_parser_helper(repeat_dataset=True).num_epochs, 0)
    self.assertEqual(solver.solver_parser_helper(eval_batches=7).max_eval_batches, 7)
    self.assertEqual(solver.solver_parser_helper(max_eval_batches=7).max_eval_batches, 7)

  def test_values_cannot_be_written(self):
    found = solver.solver_parser_helper(seed=3)
    with self.assertRaisesRegex(AttributeError, "read-only: 'seed'"):
      found.seed = 4
    with self.assertRaisesRegex(AttributeError, "no attribute 'sead'"):
      found.sead  # pylint: disable=pointless-statement

  @parameterized.parameters(
      (dict(batchsize=0), "batchsize: expected an integer of at least 1, got 0"),
      (dict(batchsize=10, vvgpu=[[0, 1], [0]]),
       "batchsize: expected a multiple of the 3 devices of vvgpu, got 10"),
      (dict(batchsize=12, batchsize_eval=10, vvgpu=[[0, 1, 2]]), "batchsize_eval: expected"),
      (dict(vvgpu=[0]), "vvgpu: expected a list of different device numbers"),
      (dict(vvgpu=[[0, 0]]), "vvgpu: expected a list of different device numbers"),
      (dict(vvgpu=[]), "vvgpu: expected"), (dict(vvgpu=[[]]), "vvgpu: expected"),
      (dict(seed=-1), "seed: expected"), (dict(embedding_files=[3]), "embedding_files: expected"),
      (dict(model_file=None), "model_file: expected a path"),
      (dict(use_mixed_precision=True, scaler=3), "scaler: expected one of 1, 128, 256"),
      (dict(oversubscription_storage="SSD"),
       "oversubscription_storage: expected one of DRAM_SSDHASH, HBM_DRAM, got 'SSD'"),
      (dict(eval_metrics=["AUK"]), r"eval_metrics: \[0\]: expected a string like"),
      (dict(eval_metrics=[]), "eval_metrics: expected a list of at least 1"),
      (dict(eval_batches=1, max_eval_batches=2), "are one setting: give one of them"))
  def test_refuses(self, arguments, expected):
    with self.assertRaisesRegex(ValueError, expected):
      solver.solver_parser_helper(**arguments)

  def file(self, clause):
    text = '{%s"optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}}, '
    text += '"layers": [%s, %s]}'
    data = ('{"name": "d", "type": "Data", "source": "s", "label": {"top": "l", '
            '"label_dim": 1}, "dense": {"top": "x", "dense_dim": 1}, "sparse": [{"top": '
            '"k", "type": "DistributedSlot", "slot_num": 1, '
            '"max_feature_num_per_sample": 1}]}')
    loss = ('{"name": "e", "type": "BinaryCrossEntropyLoss", "bottom": ["x", "l"], '
            '"top": "loss"}')
    clause = '"solver": %s, ' % clause if clause else ""
    return self.create_tempfile(content=text % (clause, data, loss)).full_path

  def test_of_a_file(self):
    found = solver.SolverParser(self.file(
        '{"gpu": [0, 2], "batchsize": 64, "max_iter": 5, "display": 1, '
        '"eval_metrics": ["AUC:0.8", "AverageLoss"], "input_key_type": "I64", '
        '"sparse_model_file": "a.model", "mixed_precision": 1024}'))
    self.assertEqual((found.vvgpu, found.batchsize, found.batchsize_eval, found.max_iter,
                      found.eval_metrics, found.i64_input_key, found.embedding_files,
                      found.scaler, found.repeat_dataset),
                     ([[0, 2]], 64, 64, 5, ["AUC:0.8", "AverageLoss"], True, ["a.model"],
                      1024.0, True))
    found = solver.SolverParser(self.file('{"gpu": [[0], [1]], "num_epochs": 3}'))
    self.assertEqual((found.vvgpu, found.num_epochs, found.repeat_dataset),
                     ([[0], [1]], 3, False))

  @parameterized.parameters(
      ("", "'solver' is missing"),
      ('{"max_iter": 1, "num_epochs": 1}', "either max_iter or num_epochs"),
      ('{"gpu": [0, [1]]}', "solver.gpu: expected numbers, or lists of them, got both"),
      ('{"gpu": [0, 1], "batchsize": 3}', "solver: batchsize: expected a multiple"),
      ('{"gpus": [0]}', "solver.gpus: no such key; did you mean 'gpu'?"))
  def test_of_a_wrong_file(self, clause, expected):
    with self.assertRaisesRegex(errors.ConfigError, expected):
      solver.SolverParser(self.file(clause))

  def test_scheduler_of_a_file(self):
    self.assertEqual(learning_rate.get_learning_rate_scheduler(
        self.example("dlrm")).get_next(), 24.0 / 8000)

  def example(self, name):
    return "addons/hugectr/example/%s.json" % name


class MetricsTest(parameterized.TestCase):

  def test_auc_against_all_pairs(self):
    random = np.random.RandomState(2)
    for values in (3, 1000):
      for size in (2, 5, 60):
        labels = random.randint(2, size=size).astype(np.float32)
        labels[:2] = 0, 1
        predictions = random.randint(values, size=size).astype(np.float32)
        pairs = [1. if p > n else .5 if p == n else 0.
                 for p in predictions[labels == 1] for n in predictions[labels == 0]]
        self.assertAlmostEqual(metrics.auc(labels, predictions), np.mean(pairs))

  def test_auc_without_positives_or_negatives_or_with_nan(self):
    self.assertTrue(np.isnan(metrics.auc([1, 1], [.1, .2])))
    self.assertTrue(np.isnan(metrics.auc([0, 0], [.1, .2])))
    self.assertTrue(np.isnan(metrics.auc([0, 1], [.1, np.nan])))
    self.assertTrue(np.isnan(metrics.auc([], [])))

  def test_mean_of_labels(self):
    labels = np.array([[0, 1], [1, 0], [1, 0]], np.float32)
    predictions = np.array([[.1, .1], [.2, .2], [.3, .3]], np.float32)
    self.assertEqual(metrics.mean_over_labels(metrics.auc, labels, predictions), .5)
    found = metrics.values([metrics.parse(m) for m in ("HitRate", "SMAPE")],
                           np.array([[1., 0.], [-1., 1.]]),
                           np.array([[.9, .9], [.9, 1.]]), None)
    # A label of -1 is unknown: only one sample counts for the first label.
    self.assertEqual(found[0], ("HitRate", .75))
    self.assertEqual(found[1][0], "SMAPE")
    self.assertAlmostEqual(found[1][1], (.1 / .95 + (2. + 0.) / 2) / 2)

  def test_hit_rate(self):
    self.assertEqual(metrics.hit_rate([1, 0, 1, 1], [.9, .81, .8, 1.]), 2 / 3)
    self.assertTrue(np.isnan(metrics.hit_rate([1, 0], [.1, .8])))
    self.assertTrue(np.isnan(metrics.hit_rate([1, 0], [.9, np.nan])))

  def test_ndcg_against_all_orders(self):
    random = np.random.RandomState(3)
    for _ in range(20):
      labels = random.randint(0, 2, 6)
      labels[random.randint(6)] = 1
      # Few distinct values: the mean is over all orders of equal ones.
      predictions = random.randint(0, 3, 6) / 4
      gains = []
      for order in itertools.permutations(range(6)):
        if all(predictions[a] >= predictions[b] for a, b in zip(order, order[1:])):
          gains.append(sum(labels[k] / math.log2(rank + 2) for rank, k in enumerate(order)))
      best = sum(1 / math.log2(rank + 2) for rank in range(labels.sum()))
      self.assertAlmostEqual(metrics.ndcg(labels, predictions), np.mean(gains) / best)
    self.assertEqual(metrics.ndcg([0, 1, 1], [.1, .3, .2]), 1.)
    self.assertTrue(np.isnan(metrics.ndcg([0, 0], [.1, .2])))
    self.assertTrue(np.isnan(metrics.ndcg([0, 1], [.1, np.nan])))

  def test_smape(self):
    self.assertAlmostEqual(metrics.smape([1, 0, 0], [.5, 0., .1]), (.5 / .75 + 0 + 2) / 3)
    self.assertTrue(np.isnan(metrics.smape([-1.], [.5])))
    self.assertTrue(np.isnan(metrics.smape([1., 1.], [.5, np.nan])))

  def test_thresholds(self):
    auc, loss = metrics.parse("AUC:0.8"), metrics.parse("AverageLoss:0.5")
    self.assertTrue(metrics.is_reached(auc, .8))
    self.assertFalse(metrics.is_reached(auc, .79))
    self.assertFalse(metrics.is_reached(auc, float("nan")))
    self.assertTrue(metrics.is_reached(loss, .5))
    self.assertTrue(metrics.is_reached(metrics.parse("SMAPE:0.3"), .2))
    self.assertFalse(metrics.is_reached(metrics.parse("NDCG:0.3"), .2))
    self.assertFalse(metrics.is_reached(loss, .51))
    self.assertFalse(metrics.is_reached(metrics.parse("AUC"), 1.))

  def test_accumulates(self):
    held = metrics.Accumulator()
    held.add(np.array([[0.]]), np.array([[.1]]), .5)
    held.add(np.array([[1.], [0.]]), np.array([[.2], [.3]]), .75)
    self.assertEqual(metrics.values([metrics.parse("AverageLoss"), metrics.parse("AUC")],
                                    *held.arrays()),
                     [("AverageLoss", .625), ("AUC", .5)])


class SparseFilesTest(parameterized.TestCase):

  def rows(self, has_slots=True):
    return sparse_files.Rows(
        np.array([3, 258]), np.array([0, 25]) if has_slots else None,
        [np.array([[1., -2.], [.5, 0.]], np.float32)])

  def test_flat_bytes(self):
    path = self.create_tempdir().full_path + "/f"
    floats = b"\x00\x00\x80\x3f\x00\x00\x00\xc0", b"\x00\x00\x00\x3f\x00\x00\x00\x00"
    keys = b"\x03\x00\x00\x00", b"\x02\x01\x00\x00"
    slots = b"\x00" * 8, b"\x19" + b"\x00" * 7
    wide = b"\x00" * 4
    for has_slots, key_bytes, expected in (
        (False, 4, keys[0] + floats[0] + keys[1] + floats[1]),
        (False, 8, keys[0] + wide + floats[0] + keys[1] + wide + floats[1]),
        (True, 4, keys[0] + slots[0] + floats[0] + keys[1] + slots[1] + floats[1]),
        (True, 8, keys[0] + wide + slots[0] + floats[0] + keys[1] + wide + slots[1] +
         floats[1])):
      sparse_files.write_flat(path, self.rows(has_slots), key_bytes)
      with open(path, "rb") as f:
        self.assertEqual(f.read(), expected)
      self.same(sparse_files.read(path, key_bytes, has_slots, 2, ["emb_vector"]),
                self.rows(has_slots))

  def same(self, found, expected):
    np.testing.assert_array_equal(found.keys, expected.keys)
    if expected.slots is None:
      self.assertIsNone(found.slots)
    else:
      np.testing.assert_array_equal(found.slots, expected.slots)
    for one, other in zip(found.arrays, expected.arrays):
      np.testing.assert_array_equal(one, other)

  def test_folder_bytes(self):
    path = self.create_tempdir().full_path + "/f"
    for has_slots in (True, False):
      rows = self.rows(has_slots)
      sparse_files.write_folder(path, rows, ["emb_vector"])
      self.same(sparse_files.read(path, 4, has_slots, 2, ["emb_vector"]), rows)
    sparse_files.write_folder(path, self.rows(), ["emb_vector"])
    for name, expected in (("key", b"\x03" + b"\x00" * 7 + b"\x02\x01" + b"\x00" * 6),
                           ("slot_id", b"\x00" * 8 + b"\x19" + b"\x00" * 7),
                           ("emb_vector", self.rows().arrays[0].tobytes())):
      with open(path + "/" + name, "rb") as f:
        self.assertEqual(f.read(), expected)

  def test_each_form_replaces_the_other(self):
    path = self.create_tempdir().full_path + "/f"
    for _ in range(2):
      sparse_files.write_folder(path, self.rows(), ["emb_vector"])
      sparse_files.write_flat(path, self.rows(), 4)
      self.same(sparse_files.read(path, 4, True, 2, ["emb_vector"]), self.rows())

  def test_a_folder_is_replaced_as_a_whole(self):
    path = self.create_tempdir().full_path + "/f"
    sparse_files.write_folder(path, self.rows(), ["emb_vector"])
    newer = self.rows()._replace(keys=self.rows().keys + 1)
    with mock.patch.object(os, "replace", side_effect=OSError("ended")):
      with self.assertRaises(OSError):
        sparse_files.write_folder(path, newer, ["emb_vector"])
    self.same(sparse_files.read(path, 4, True, 2, ["emb_vector"]), newer)
    with mock.patch.object(embedding_variable.durable, "sync", side_effect=OSError("full")):
      with self.assertRaises(OSError):
        sparse_files.write_folder(path, self.rows(), ["emb_vector"])
    self.same(sparse_files.read(path, 4, True, 2, ["emb_vector"]), newer)
    sparse_files.write_folder(path, self.rows(), ["emb_vector"])
    self.same(sparse_files.read(path, 4, True, 2, ["emb_vector"]), self.rows())
    self.assertEqual(os.listdir(os.path.dirname(path)), ["f"])

  def test_keys_that_do_not_fit(self):
    for key in (-1, 1 << 32):
      rows = sparse_files.Rows(np.array([key]), None, [np.zeros([1, 2], np.float32)])
      with self.assertRaisesRegex(ValueError, "do not fit 4 bytes"):
        sparse_files.write_flat(self.create_tempdir().full_path + "/f", rows, 4)

  def test_files_of_another_size(self):
    path = self.create_tempfile(content=b"x" * 15, mode="wb").full_path
    with self.assertRaisesRegex(ValueError, "15 bytes are not a whole number of records of "
                                "12: a key of 4, 1 x 2 floats"):
      sparse_files.read(path, 4, False, 2, ["emb_vector"])
    folder = self.create_tempdir().full_path + "/f"
    sparse_files.write_folder(folder, self.rows(), ["emb_vector"])
    with self.assertRaisesRegex(ValueError, "has 4 floats, expected 3 for each of 2"):
      sparse_files.read(folder, 4, True, 3, ["emb_vector"])
    with self.assertRaises(OSError):
      sparse_files.read(folder, 4, True, 2, ["m"])


if __name__ == "__main__":
  absltest.main()
