# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests Model: training, the JSON's front, printed lines, files, freezing."""

import contextlib
import io
import json
import os
import re

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr.api import small_scripts
from hugectr.training import metrics


class ModelTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/model_test"
    small_scripts.write_norm(cls.folder)

  def dcn(self, compiled=True, **arguments):
    model = small_scripts.dcn(self.folder, **arguments)
    self.addCleanup(model.close)
    if compiled:
      model.compile()
    return model

  def printed(self, function, *args, **kwargs):
    """Returns the lines that a call prints, without times of day."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      function(*args, **kwargs)
    return [re.sub(r"^\[HCTR\]\[\d\d:\d\d:\d\d\.\d{3}\]", "", line)
            for line in out.getvalue().splitlines()]

  def files(self, prefix):
    """Returns the content of all files whose names begin with a prefix."""
    found = {}
    for folder, _, names in os.walk(os.path.dirname(prefix)):
      for name in names:
        path = os.path.join(folder, name)
        if path.startswith(prefix):
          with open(path, "rb") as f:
            found[path[len(prefix):]] = f.read()
    return found

  def test_fit_trains_to_the_bits_of_a_session(self):
    folder = self.create_tempdir().full_path
    model = self.dcn(compiled=False, warmup_steps=4, decay_start=10, decay_steps=8)
    model.graph_to_json(folder + "/graph.json")
    model.compile()
    model.fit(max_iter=20, display=0, eval_interval=0, snapshot=20,
              snapshot_prefix=folder + "/model")
    schedule = hugectr.get_learning_rate_scheduler(folder + "/graph.json")
    with hugectr.Session(hugectr.SolverParser(folder + "/graph.json"),
                         folder + "/graph.json") as session:
      session.start_data_reading()
      for _ in range(20):
        session.set_learning_rate(schedule.get_next())
        session.train()
      session.download_params_to_files(folder + "/session", 20, "directory")
      self.assertEqual(model.get_current_loss(), session.get_current_loss())
    found = self.files(folder + "/model")
    self.assertCountEqual(found, [
        "_dense_20.model", "_opt_dense_20.model", "_opt_dense_20.model.ntp.json",
        "0_sparse_20.model/key", "0_sparse_20.model/emb_vector",
        "0_opt_sparse_20.model/key", "0_opt_sparse_20.model/m", "0_opt_sparse_20.model/v"])
    self.assertEqual(found, self.files(folder + "/session"))

  def test_learns(self):
    model = self.dcn(lr=0.05)
    model.fit(max_iter=100, display=0, eval_interval=0, snapshot=0)
    for _ in range(10):
      model.eval()
    (name, auc), = model.get_eval_metrics()
    self.assertEqual(name, "AUC")
    self.assertGreater(auc, .7)

  def test_prints_what_scripts_parse(self):
    model = self.dcn(compiled=False, model_name="a model")
    compiled = self.printed(model.compile)
    self.assertIn("[INFO][RK0][main]: Graph analysis to resolve tensor dependency", compiled)
    self.assertIn("[INFO][RK0][main]: Add Slice layer for tensor: both, creating 2 copies",
                  compiled)
    lines = self.printed(model.fit, max_iter=4, display=2, eval_interval=4, snapshot=100)
    self.assertRegex(lines[0], "^=+Model Fit=+$")
    number = r"\d[\d.e-]*"
    for expected in (
        "Use non-epoch mode with number of iterations: 4",
        "Training batchsize: 50, evaluation batchsize: 40",
        "Evaluation interval: 4, snapshot interval: 100", "Dense network trainable: True",
        "Sparse embedding rows trainable: True",
        "Use mixed precision: False, scaler: 1.000000, use cuda graph: True",
        "lr: 0.010000, warmup_steps: 1, end_lr: 0.000000",
        "decay_start: 0, decay_steps: 1, decay_power: 2.000000",
        "Training source file: %s/train/_file_list.txt" % self.folder,
        "Evaluation source file: %s/val/_file_list.txt" % self.folder,
        "Iter: 2 Time(2 iters): %ss Loss: %s lr:0.01" % (number, number),
        "Iter: 4 Time(2 iters): %ss Loss: %s lr:0.01" % (number, number),
        "Evaluation, AUC: " + number, "Eval Time for 5 iters: %ss" % number,
        "Finish 4 iterations with batchsize: 50 in %ss." % number):
      pattern = re.compile(re.escape("[INFO][RK0][main]: ") +
                           re.sub(r"\((\d iters)\)", r"\\(\1\\)", expected) + "$")
      self.assertLen([line for line in lines if pattern.match(line)], 1, expected)

  def test_summary(self):
    model = self.dcn(compiled=False)
    lines = [re.split(r"\s{2,}", line.strip()) for line in self.printed(model.summary)]
    for expected in (["label", "Dense", "Sparse"], ["label", "dense", "keys"],
                     ["(50,1)", "(50,3)"],
                     ["Layer Type", "Input Name", "Output Name", "Output Shape"],
                     ["DistributedSlotSparseEmbeddingHash", "keys", "rows", "(50,4,4)"],
                     ["Slice", "both", "both_slice0", "(50,19)"], ["both_slice1", "(50,19)"],
                     ["MultiCross", "both_slice0", "cross", "(50,19)"],
                     ["BinaryCrossEntropyLoss", "logit", "loss"], ["label"]):
      self.assertIn(expected, lines)

  def test_graph_of_a_json_trains_to_the_same_bits(self):
    path = self.create_tempdir().full_path + "/graph.json"
    model = self.dcn(compiled=False)
    model.graph_to_json(path)
    with open(path) as f:
      text = f.read()
    self.assertEqual(text, json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n")
    again = hugectr.Model(
        small_scripts.solver(), small_scripts.reader(self.folder),
        hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
    self.addCleanup(again.close)
    again.construct_from_json(path, include_dense_network=True)
    part = hugectr.Model(
        small_scripts.solver(), small_scripts.reader(self.folder),
        hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
    self.addCleanup(part.close)
    part.construct_from_json(path, include_dense_network=False)
    part.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["rows"], ["flat"],
                                leading_dim=16))
    part.add(hugectr.DenseLayer(hugectr.Layer_t.Concat, ["flat", "dense"], ["both"]))
    small_scripts.add_dcn(part)
    losses = []
    for one in (model, again, part):
      one.compile()
      one.fit(max_iter=5, display=0, eval_interval=0, snapshot=0)
      losses.append(one.get_current_loss())
    self.assertEqual(losses[0], losses[1])
    self.assertEqual(losses[0], losses[2])

  def test_goes_on_from_files(self):
    prefix = self.create_tempdir().full_path + "/new/m"
    model = self.dcn()
    model.fit(max_iter=16, display=0, eval_interval=0, snapshot=0)  # twice the data
    self.assertEqual(model.save_params_to_files(prefix, 3), hugectr.Error_t.Success)
    again = self.dcn()
    again.load_dense_weights(prefix + "_dense_3.model")
    again.load_dense_optimizer_states(prefix + "_opt_dense_3.model")
    again.load_sparse_weights({"rows": prefix + "0_sparse_3.model"})
    again.load_sparse_optimizer_states([prefix + "0_opt_sparse_3.model"])
    again.save_params_to_files(prefix + "again", 3)
    found = self.files(prefix)
    for name in [n for n in found if not n.startswith("again")]:
      self.assertEqual(found[name], found["again" + name], name)
    before = self.files(prefix)
    for call, argument in (("load_dense_weights", prefix + "_opt_dense_3.model"),
                           ("load_sparse_weights", [prefix + "0_opt_sparse_3.model"]),
                           ("load_sparse_weights", []),
                           ("load_sparse_weights", {"Rows": prefix + "0_sparse_3.model"})):
      with self.assertRaises((ValueError, OSError)):
        getattr(again, call)(argument)
    again.save_params_to_files(prefix, 3)
    self.assertEqual(before, self.files(prefix))

  def test_frozen_parts_stay(self):
    model = self.dcn(optimizer=hugectr.CreateOptimizer(
        hugectr.Optimizer_t.MomentumSGD, hugectr.Update_t.Local, momentum_factor=0.9))
    prefix = self.create_tempdir().full_path + "/m"
    model.fit(max_iter=10, display=0, eval_interval=0, snapshot=0)

    def changed(number):
      model.save_params_to_files(prefix, number)
      model.fit(max_iter=8, display=0, eval_interval=0, snapshot=0)
      model.save_params_to_files(prefix, number + 1)
      found = self.files(prefix)
      return [found["%s_%d.model%s" % (what, number, end)] !=
              found["%s_%d.model%s" % (what, number + 1, end)]
              for what, end in (("_dense", ""), ("0_sparse", "/emb_vector"))]

    model.freeze_dense()
    self.assertEqual(changed(1), [False, True])
    model.freeze_embedding("rows")
    self.assertEqual(changed(3), [False, False])
    model.unfreeze_dense()
    self.assertEqual(changed(5), [True, False])
    lines = self.printed(model.fit, max_iter=1, display=0, eval_interval=0, snapshot=0)
    self.assertIn("[INFO][RK0][main]: Sparse embedding rows trainable: False", lines)
    model.unfreeze_embedding()
    self.assertEqual(changed(7), [True, True])
    with self.assertRaisesRegex(ValueError, "no embedding 'row'; embeddings are rows"):
      model.freeze_embedding("row")

  @parameterized.parameters("MomentumSGD", "Adam")
  def test_rows_do_not_catch_up_on_steps_in_which_they_were_frozen(self, kind):
    model = self.dcn(batchsize=10, optimizer=hugectr.CreateOptimizer(
        getattr(hugectr.Optimizer_t, kind), hugectr.Update_t.LazyGlobal,
        momentum_factor=.9))
    prefix = self.create_tempdir().full_path + "/m"
    model.start_data_reading()

    def trained(number, steps):
      """Trains; returns {key: (row, momentum, time)}."""
      for _ in range(steps):
        model.train()
      model.save_params_to_files(prefix, number)
      state = "momentum" if kind == "MomentumSGD" else "m"
      found = [np.fromfile("%s0_%s" % (prefix, name % number), np.float32).reshape([-1, 4])
               for name in ("sparse_%d.model/emb_vector", "opt_sparse_%d.model/" + state,
                            "opt_sparse_%d.model/time")]
      keys = np.fromfile(prefix + "0_sparse_%d.model/key" % number, np.int64).tolist()
      return dict(zip(keys, zip(*found)))

    before = trained(0, 7)
    model.freeze_embedding("rows")
    frozen = trained(1, 5)
    for key, (row, momentum, time) in before.items():
      np.testing.assert_array_equal(frozen[key][:2], (row, momentum))
      np.testing.assert_array_equal(frozen[key][2], time + 5)
    frozen = trained(2, 4)  # the save has not counted steps twice
    model.unfreeze_embedding()
    model.set_learning_rate(0.)
    found = trained(3, 1)
    moved = 0
    for key, (row, momentum, time) in frozen.items():
      np.testing.assert_array_equal(time, before[key][2] + 9)
      if found[key][2][0] != 17:  # not in the batch
        np.testing.assert_array_equal(found[key], frozen[key])
        continue
      missed = 7 - before[key][2][0]
      if kind == "MomentumSGD":
        # The missed steps before the freezing, and the step itself, without a gradient.
        powers = sum(.9 ** k for k in range(1, int(missed) + 2))
        np.testing.assert_allclose(found[key][0], row - powers * momentum, rtol=1e-4,
                                   atol=1e-6)
      moved += missed > 0
    self.assertGreater(moved, 0)

  def test_low_level_calls(self):
    model = self.dcn(repeat_dataset=False)
    with self.assertRaisesRegex(RuntimeError, "no data is being read"):
      model.train()
    model.start_data_reading()
    losses = []
    while model.train():
      losses.append(model.get_current_loss())
    self.assertLen(losses, 8)
    self.assertEqual(model.get_learning_rate_scheduler().get_next(), 0.01)
    model.set_learning_rate(0.)
    model.get_data_reader_train().set_source()
    self.assertTrue(model.get_data_reader_train().is_started)
    self.assertTrue(model.train())
    while model.eval():
      pass
    found = model.get_eval_metrics()
    self.assertEqual(found[0][0], "AUC")
    self.assertEmpty(model.get_eval_metrics())

  def test_epochs(self):
    model = self.dcn(repeat_dataset=False, batchsize=60)  # 6 batches, and 40 samples
    lines = self.printed(model.fit, num_epochs=2, display=0, eval_interval=6, snapshot=0)
    text = "\n".join(lines)
    self.assertIn("Use epoch mode with number of epochs: 2", text)
    self.assertIn("train drop incomplete batch. batchsize:40", text)
    self.assertIn("Finish 2 epochs 12 global iterations with batchsize 60", text)
    self.assertEqual(text.count("Evaluation, AUC"), 2)
    whole = self.dcn(repeat_dataset=False, batchsize=60, drop_incomplete_batch=False)
    lines = self.printed(whole.fit, num_epochs=2, display=0, eval_interval=0, snapshot=0)
    self.assertIn("Finish 2 epochs 14 global iterations", "\n".join(lines))
    with self.assertRaisesRegex(ValueError, "num_epochs: expected at least 1"):
      model.fit(max_iter=10)
    model.set_source(self.folder + "/val/_file_list.txt", self.folder +
                     "/train/_file_list.txt")
    lines = self.printed(model.fit, num_epochs=1, display=0, eval_interval=0, snapshot=0)
    self.assertIn("Training source file: %s/val/_file_list.txt" % self.folder,
                  "\n".join(lines))

  def test_callbacks_and_threshold(self):
    calls = []

    class Callback(hugectr.TrainingCallback):

      def on_training_start(self):
        calls.append("start")

      def on_training_end(self, current_iter):
        calls.append(("end", current_iter))

      def on_eval_start(self, current_iter):
        calls.append(("eval", current_iter))
        return current_iter == 2

      def on_eval_end(self, current_iter, eval_results):
        calls.append((current_iter, sorted(eval_results)))
        return current_iter == 6

    model = self.dcn(training_callbacks=[Callback()])
    model.fit(max_iter=10, display=0, eval_interval=2, snapshot=0)
    self.assertEqual(calls, ["start", ("eval", 2), ("eval", 4), (4, ["AUC"]), ("eval", 6),
                             (6, ["AUC"]), ("end", 6)])
    model = self.dcn(metrics_spec={hugectr.MetricsType.AverageLoss: 0.,
                                   hugectr.MetricsType.AUC: 0.1})
    lines = self.printed(model.fit, max_iter=10, display=0, eval_interval=3, snapshot=0)
    text = "\n".join(lines)
    self.assertLess(text.index("Evaluation, AUC"), text.index("Evaluation, AverageLoss"))
    self.assertIn("Hit target accuracy AUC 0.1", text)
    self.assertIn("Finish 3 iterations", text)

  def test_predictions_and_tensors(self):
    model = self.dcn()
    with self.assertRaisesRegex(RuntimeError, "no batch has been evaluated"):
      model.check_out_tensor("rows", hugectr.Tensor_t.Evaluate)
    model.fit(max_iter=8, display=0, eval_interval=0, snapshot=0)
    folder = self.create_tempdir().full_path
    for _ in range(5):
      model.eval()
      model.export_predictions(folder + "/pred", folder + "/label")
    predictions, labels = (np.loadtxt(folder + "/" + n) for n in ("pred", "label"))
    self.assertEqual(predictions.shape, (200,))
    (_, auc), = model.get_eval_metrics()
    self.assertAlmostEqual(metrics.auc(labels, predictions), auc, places=6)
    found = model.check_out_tensor("rows", hugectr.Tensor_t.Evaluate)
    self.assertEqual((found.shape, found.dtype), ((40, 4, 4), np.float32))
    found = model.check_out_tensor("logit", hugectr.Tensor_t.Evaluate)
    np.testing.assert_allclose(found[:, 0], predictions[-40:], rtol=1e-5)
    self.assertEqual(model.check_out_tensor("fc1", hugectr.Tensor_t.Train).shape, (50, 16))
    with self.assertRaisesRegex(ValueError, "no tensor 'fc2'"):
      model.check_out_tensor("fc2", hugectr.Tensor_t.Train)

  def test_a_loss_of_nan_ends_fit(self):
    model = self.dcn(optimizer=hugectr.CreateOptimizer(hugectr.Optimizer_t.SGD), lr=1e30)
    with self.assertRaisesRegex(RuntimeError, "the loss is NaN after iteration"):
      model.fit(max_iter=50, display=0, eval_interval=0, snapshot=0)

  def test_a_random_seed_is_printed(self):
    lines = []
    for _ in range(2):
      lines += self.printed(small_scripts.dcn, self.folder, seed=0)
    seeds = [int(line.rpartition(" ")[2]) for line in lines if "Global seed is" in line]
    self.assertLen(set(seeds), 2)


if __name__ == "__main__":
  absltest.main()
