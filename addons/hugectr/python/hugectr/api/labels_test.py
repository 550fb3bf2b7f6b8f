# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests models with several labels: order of columns, weights of losses, metrics."""

import contextlib
import io

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr.api import small_scripts
from hugectr.training import metrics

_SIZES = [small_scripts.SIZE] * small_scripts.SLOTS


class LabelsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/labels_test"
    small_scripts.write_norm(cls.folder, label_dim=2)

  def model(self, names=("b", "a"), dims=(1, 1), more=None, **label):
    """Returns a model with an InnerProduct and a loss for each label."""
    model = hugectr.Model(
        small_scripts.solver(metrics_spec={hugectr.MetricsType.AUC: 1.,
                                           hugectr.MetricsType.AverageLoss: 0.}),
        small_scripts.reader(self.folder),
        hugectr.CreateOptimizer(hugectr.Optimizer_t.SGD, hugectr.Update_t.Local))
    self.addCleanup(model.close)
    model.add(hugectr.Input(
        label_dims=list(dims), label_names=list(names), dense_dim=small_scripts.DENSE,
        dense_name="dense", data_reader_sparse_param_array=[
            hugectr.DataReaderSparseParam("keys", 1, True, small_scripts.SLOTS)], **label))
    model.add(hugectr.SparseEmbedding(
        hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 1, 4, "sum", "rows", "keys"))
    layer = hugectr.Layer_t
    model.add(hugectr.DenseLayer(layer.Reshape, ["rows"], ["flat"], leading_dim=16))
    for name in names:
      model.add(hugectr.DenseLayer(layer.InnerProduct, ["flat"], ["logit_" + name],
                                   num_output=1))
    for name in names:
      model.add(hugectr.DenseLayer(layer.BinaryCrossEntropyLoss, ["logit_" + name, name],
                                   ["loss_" + name], **(more or {})))
    return model

  def evaluated(self, model):
    """Evaluates a batch; returns its labels, predictions and metrics."""
    model.eval()
    labels, predictions = model._session.last_predictions()  # pylint: disable=protected-access
    return labels, predictions, model.get_eval_metrics()

  def test_columns_belong_to_labels_in_alphabetical_order(self):
    model = self.model()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      model.compile()
      model.fit(max_iter=2, display=0, eval_interval=2, snapshot=0)
    labels, predictions, found = self.evaluated(model)
    np.testing.assert_array_equal(
        model.check_out_tensor("combined_multi_label", hugectr.Tensor_t.Evaluate),
        labels[:, ::-1])  # losses were added for "b", then "a"
    np.testing.assert_array_equal(
        model.check_out_tensor("a", hugectr.Tensor_t.Evaluate), labels[:, 1:])
    np.testing.assert_allclose(
        model.check_out_tensor("logit_a", hugectr.Tensor_t.Evaluate), predictions[:, 1:],
        rtol=1e-5)
    each = [metrics.auc(labels[:, k], predictions[:, k]) for k in range(2)]
    self.assertAlmostEqual(dict(found)["AUC"], np.mean(each), places=6)
    self.assertRegex(out.getvalue(), r"Evaluation, AUC: \{0\.\d+, 0\.\d+\}")
    with self.assertRaisesRegex(RuntimeError, "2 labels, expected 1"):
      model.export_predictions("a", "b")

  @parameterized.parameters((["b", "a"], [.25, 2.], [.25, 2.]), (None, None, [5., 7.]),
                            (["a"], [.5], [5., .5]))
  def test_weights_of_losses(self, names, new, weights):
    model = self.model(label_weights=[5., 7.])
    prefix = self.create_tempdir().full_path + "/m"
    model.compile(names, new)
    model.save_params_to_files(prefix, 0)
    labels, predictions, found = self.evaluated(model)
    crossed = -np.mean(np.log(np.where(labels > 0, predictions, 1 - predictions)), axis=0)
    self.assertAlmostEqual(dict(found)["AverageLoss"], np.dot(weights, crossed), places=5)
    # The weights reach the gradients.
    model.start_data_reading()
    model.set_learning_rate(1.)
    model.train()
    given = model.check_out_tensor("combined_multi_label", hugectr.Tensor_t.Train)
    before = np.fromfile(prefix + "_dense_0.model", np.float32).reshape([2, 17])
    model.save_params_to_files(prefix, 1)
    after = np.fromfile(prefix + "_dense_1.model", np.float32).reshape([2, 17])
    again = self.model()
    again.compile(["a", "b"], [0., 0.])
    again.load_dense_weights(prefix + "_dense_0.model")
    again.load_sparse_weights([prefix + "0_sparse_0.model"])
    again.start_data_reading()
    again.train()
    for row, (name, weight) in enumerate(zip("ba", weights)):
      logit = again.check_out_tensor("logit_" + name, hugectr.Tensor_t.Train)[:, 0]
      slope = 1 / (1 + np.exp(-logit)) - given[:, "ab".index(name)]
      self.assertAlmostEqual(before[row, 16] - after[row, 16], weight * slope.mean(),
                             places=5)

  def test_the_json_has_the_labels_and_weights(self):
    path = self.create_tempdir().full_path + "/graph.json"
    model = self.model(label_weights=[.5, 2.])
    model.compile()
    model.graph_to_json(path)
    model.fit(max_iter=3, display=0, eval_interval=0, snapshot=0)
    with hugectr.Session(hugectr.SolverParser(path), path) as session:
      session.start_data_reading()
      for _ in range(3):
        session.train()
      self.assertEqual(session.get_current_loss(), model.get_current_loss())
    again = hugectr.Model(
        small_scripts.solver(), small_scripts.reader(self.folder),
        hugectr.CreateOptimizer(hugectr.Optimizer_t.SGD, hugectr.Update_t.Local))
    self.addCleanup(again.close)
    again.construct_from_json(path)
    again.compile()
    again.fit(max_iter=3, display=0, eval_interval=0, snapshot=0)
    self.assertEqual(again.get_current_loss(), model.get_current_loss())

  def test_a_regularizer_needs_one_loss(self):
    with self.assertRaisesRegex(hugectr.ConfigError, "'loss_b'.*a regularizer needs a single "
                                "loss, got 2"):
      self.model(more={"use_regularizer": True, "lambda": .1})

  def test_a_label_of_several_columns(self):
    model = hugectr.Model(small_scripts.solver(), small_scripts.reader(self.folder),
                          hugectr.CreateOptimizer())
    self.addCleanup(model.close)
    model.add(hugectr.Input(2, "label", small_scripts.DENSE, "dense", [
        hugectr.DataReaderSparseParam("keys", [1] * small_scripts.SLOTS, False,
                                      small_scripts.SLOTS)]))
    model.add(hugectr.SparseEmbedding(
        hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash, 1, 4, "mean", "rows", "keys",
        slot_size_array=_SIZES))
    layer = hugectr.Layer_t
    model.add(hugectr.DenseLayer(layer.Reshape, ["rows"], ["flat"], leading_dim=16))
    model.add(hugectr.DenseLayer(layer.InnerProduct, ["flat"], ["logit"], num_output=2))
    model.add(hugectr.DenseLayer(layer.MultiCrossEntropyLoss, ["logit", "label"], ["loss"],
                                 target_weight_vec=[.5, .5]))
    model.compile()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      model.fit(max_iter=4, display=2, eval_interval=4, snapshot=0)
    self.assertRegex(out.getvalue(), r"Evaluation, AUC: \{0\.\d+, 0\.\d+\}")


if __name__ == "__main__":
  absltest.main()
