# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares every layer with NumPy: outputs, and gradients of bottoms and parameters."""

import json
import re

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import deprecations
from hugectr.config import model as models
from hugectr.config import schema_check
from hugectr.layers import context as contexts
from hugectr.layers import initializers
from hugectr.layers import losses
from hugectr.layers import network
from hugectr.layers import oracle
from hugectr.layers import parameters
from hugectr.layers import shapes
from hugectr.layers import write_schema

deprecations.silence()

_BATCH = 4


def _layer(kind, bottoms, clause):
  """Returns the Layer of a clause over bottoms of given axes after the batch."""
  clause = dict(clause, type=kind)
  found = [shapes.Shape(1, tuple(dims)) for dims in bottoms]
  out = network.OF_TYPE[kind].shape(found, clause)
  return models.Layer("a layer", kind, [], [], found, out, clause)


# type, axes of the bottoms, clause, reference function
_CASES = (
    ("InnerProduct", [[5]], {"fc_param": {"num_output": 3}}, oracle.inner_product),
    ("InnerProduct", [[2, 5]], {"fc_param": {
        "num_output": 3, "weight_init": "Uniform", "bias_init": "XavierUniform"}},
     oracle.inner_product),
    ("FusedInnerProduct", [[5]], {"fc_param": {"num_output": 3}},
     oracle.fused_inner_product),
    ("MLP", [[5]], {"mlp_param": {"num_outputs": [4, 3]}}, oracle.mlp),
    ("MLP", [[2, 5]], {"mlp_param": {
        "num_outputs": [4, 3, 2], "activations": ["Relu", "Non", "Relu"],
        "biases": [True, False, True], "weight_init": "XavierNorm",
        "bias_init": "Uniform"}}, oracle.mlp),
    ("MLP", [[3]], {"mlp_param": {"num_outputs": [2], "act_type": "Non",
                                  "use_bias": False}}, oracle.mlp),
    ("MultiCross", [[5]], {"mc_param": {"num_layers": 2, "projection_dim": 3,
                                        "bias_init": "Uniform"}}, oracle.multi_cross),
    ("MultiCross", [[5]], {"mc_param": {"num_layers": 1}}, oracle.multi_cross),
    ("MultiCross", [[5]], {"mc_param": {"num_layers": 3, "bias_init": "XavierNorm"}},
     oracle.multi_cross),
    ("Interaction", [[3], [4, 3]], {}, oracle.interaction),
    ("Interaction", [[2], [1, 2]], {}, oracle.interaction),
    ("Concat", [[3], [1], [2]], {}, oracle.concat),
    ("Concat", [[3, 2], [1, 2]], {}, oracle.concat),
    ("Concat", [[2, 3], [2, 1]], {"axis": 2}, oracle.concat),
    ("Slice", [[4]], {"ranges": [[0, 4], [0, 4]]}, oracle.slices),
    ("Slice", [[6]], {"ranges": [[0, 4], [2, 6], [5, 6]]}, oracle.slices),
    ("Slice", [[2, 3]], {"ranges": [[0, 3], [0, 3], [1, 3]]}, oracle.slices),
    ("Slice", [[2, 2, 3]], {"ranges": [[1, 2]]}, oracle.slices),
    ("Select", [[3, 2]], {"dim": 1, "index": [2, 0, 2]}, oracle.select),
    ("Select", [[3, 2]], {"dim": 2, "index": [1]}, oracle.select),
    ("FusedReshapeConcat", [[3, 2], [3, 1]], {}, oracle.fused_reshape_concat),
    ("FusedReshapeConcatGeneral", [[3, 2], [3, 1]], {},
     oracle.fused_reshape_concat_general),
    ("Reshape", [[3, 2]], {"leading_dim": 6}, oracle.reshape),
    ("Reshape", [[3, 2]], {"leading_dim": 2}, oracle.reshape),
    ("Reshape", [[4, 2]], {"selected": [3, 0, 3]}, oracle.reshape),
    ("Reshape", [[12]], {"leading_dim": 2, "time_step": 6}, oracle.reshape),
    ("Reshape", [[12]], {"leading_dim": 2, "time_step": 3}, oracle.reshape),
    ("Reshape", [[3, 4]], {"shape": [-1, 12]}, oracle.reshape),
    ("Reshape", [[12]], {"shape": [-1, 2, 3]}, oracle.reshape),
    ("ReLU", [[5]], {}, oracle.relu),
    ("ReLU", [[2, 3]], {}, oracle.relu),
    ("ELU", [[5]], {"elu_param": {"alpha": 0.7}}, oracle.elu),
    ("Sigmoid", [[5]], {}, oracle.sigmoid),
    ("Softmax", [[5]], {}, oracle.softmax),
    ("Softmax", [[2, 3]], {}, oracle.softmax),
    ("Softmax", [[2, 3], [1, 3]], {"factor": 0.5}, oracle.softmax),
    ("Softmax", [[2, 2, 3], [1, 2, 3]], {}, oracle.softmax),
    ("MatrixMultiply", [[2, 3], [3, 4]], {}, oracle.matrix_multiply),
    ("MatrixMultiply", [[2, 2, 3], [2, 3, 1]], {}, oracle.matrix_multiply),
    ("MultiHeadAttention", [[2, 4]] * 3, {}, oracle.attention),
    ("MultiHeadAttention", [[2, 6], [3, 6], [3, 6], [1, 2, 3]],
     {"num_attention_heads": 3}, oracle.attention),
    ("MultiHeadAttention", [[2, 6], [3, 6], [3, 6]],
     {"num_attention_heads": 2, "transpose_b": True}, oracle.attention_scores),
    ("MultiHeadAttention", [[2, 2, 3], [2, 3, 4]], {}, oracle.attention_mix),
    ("MultiHeadAttention", [[2, 6], [3, 6]], {"num_attention_heads": 3},
     oracle.attention_scores),
    ("SequenceMask", [[1]], {"max_sequence_len": 4}, oracle.sequence_mask),
    ("SequenceMask", [[1], [1]], {"max_sequence_len_from": 3, "max_sequence_len_to": 2},
     oracle.sequence_mask),
    ("Dropout", [[5]], {"rate": 0.0}, oracle.same),
    ("Cast", [[5]], {}, oracle.same),
    ("BatchNorm", [[3]], {"bn_param": {"factor": 0.9, "eps": 1e-3}}, oracle.batch_norm),
    ("BatchNorm", [[3]], {"bn_param": {"factor": 0.1, "eps": 1e-3,
                                       "gamma_init": "Uniform",
                                       "beta_init": "XavierNorm"}}, oracle.batch_norm),
    ("LayerNorm", [[5]], {"ln_param": {"eps": 1e-3, "beta_init": "Uniform"}},
     oracle.layer_norm),
    ("LayerNorm", [[2, 5]], {"ln_param": {"eps": 1e-3}}, oracle.layer_norm),
    ("Multiply", [[3]], {"weight_dims": [3, 2]}, oracle.multiply),
    ("WeightMultiply", [[3]], {"weight_dims": [3, 1]}, oracle.multiply),
    ("FmOrder2", [[6]], {"out_dim": 2}, oracle.fm_order_2),
    ("FmOrder2", [[3]], {"out_dim": 3}, oracle.fm_order_2),
    ("ReduceSum", [[5]], {"axis": 1}, oracle.reduce_sum),
    ("ReduceSum", [[3, 2]], {"axis": 1}, oracle.reduce_sum),
    ("ReduceSum", [[3, 2]], {"axis": 2}, oracle.reduce_sum),
    ("ReduceMean", [[3, 2]], {"axis": 1}, oracle.reduce_mean),
    ("Add", [[3], [3], [3]], {}, oracle.add),
    ("Sub", [[3], [3]], {}, oracle.sub),
    ("DotProduct", [[3], [3], [3]], {}, oracle.product),
    ("ElementwiseMultiply", [[3, 2], [3, 2]], {}, oracle.product),
    ("PReLU_Dice", [[3]], {"prelu_dice_param": {"alpha": 0.2, "eps": 1e-3}},
     oracle.prelu_dice),
    ("Scale", [[3]], {"scale_param": {}}, oracle.scale),
    ("Scale", [[3]], {"scale_param": {"axis": 0, "factor": 2}}, oracle.scale),
    ("Scale", [[3]], {"scale_param": {"axis": 1, "factor": 4}}, oracle.scale),
    ("GRU", [[6]], {"gru_param": {"num_output": 2, "SeqLength": 2, "vector_size": 3,
                                  "bias_init": "XavierNorm"}}, oracle.gru),
    ("GRU", [[6]], {"gru_param": {"num_output": 2, "SeqLength": 2, "vector_size": 3,
                                  "gives": "last"}}, oracle.gru),
    ("GRU", [[3, 2]], {"gru_param": {
        "num_output": 3, "SeqLength": 3, "vector_size": 2, "batchsize": 99,
        "weight_init": "XavierUniform", "bias_init": "Uniform"}}, oracle.gru),
    ("Gather", [[4]], {"indices": [3, 0, 3]}, oracle.gather),
    ("Gather", [[2, 3]], {"indices": [2, 1]}, oracle.gather),
)

_LOSSES = (
    ("BinaryCrossEntropyLoss", 1, {}, oracle.binary_cross_entropy),
    ("CrossEntropyLoss", 2, {}, oracle.cross_entropy),
    ("MultiCrossEntropyLoss", 3, {"target_weight": [0.2, 0.4, 0.4]},
     oracle.multi_cross_entropy),
)


class LayersTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.graph = tf.Graph()
    with self.graph.as_default():
      tf.compat.v1.set_random_seed(3)
      self.session = tf.compat.v1.Session(graph=self.graph)
    self.addCleanup(self.session.close)

  def test_every_type_has_a_case(self):
    self.assertCountEqual({case[0] for case in _CASES + _LOSSES}, network.OF_TYPE)
    self.assertCountEqual({case[0] for case in _LOSSES}, network.LOSSES)

  def test_the_schema_is_made_from_the_types(self):
    schema = schema_check.load_schema()
    self.assertEqual(
        json.dumps(write_schema.with_layers(schema)), json.dumps(schema),
        "run: bazel run //addons/hugectr/python/hugectr/layers:write_schema")

  @parameterized.named_parameters(*[
      (re.sub(r"\W+", "_", "_%s_%s_%s" % (kind, bottoms, sorted(clause.items()))).strip("_"),
       kind, bottoms, clause, expected) for kind, bottoms, clause, expected in _CASES])
  def test_layer(self, kind, bottoms, clause, expected):
    self.check(kind, bottoms, clause, expected, False, (1e-4, 1e-5), (2e-3, 2e-4))

  @parameterized.parameters(*[c for c in _CASES if c[0] in (
      "InnerProduct", "FusedInnerProduct", "GRU")])
  def test_layer_with_the_ops_of_a_gpu(self, kind, bottoms, clause, expected):
    self.check(kind, bottoms, clause, expected, False, (1e-4, 1e-5), (2e-3, 2e-4), True)

  @parameterized.parameters(*[c for c in _CASES if network.OF_TYPE[c[0]].runs_in_float16])
  def test_layer_in_float16(self, kind, bottoms, clause, expected):
    # float16 has 11 bits of precision, and sums lose a few of them.
    self.check(kind, bottoms, clause, expected, True, (1e-2, 1e-2), (2e-2, 2e-2), True)

  def check(self, kind, bottoms, clause, expected, has_float16, tolerance, of_slopes,
            on_gpu=False):
    """Compares a layer's outputs and gradients with NumPy's."""
    layer = _layer(kind, bottoms, clause)
    random = np.random.RandomState(len(kind))
    arrays = [random.randn(_BATCH, *dims) for dims in bottoms]
    if kind == "SequenceMask":
      # Between integers, where the mask jumps.
      arrays = [random.randint(0, 4, [_BATCH, 1]) - .5 for _ in bottoms]
    elif (kind, len(bottoms)) in (("Softmax", 2), ("MultiHeadAttention", 4)):
      # A mask; its gradient would be too steep for differences.
      arrays[-1] = random.randint(0, 2, arrays[-1].shape).astype(np.float64)
      arrays[-1][..., 0] = 1.
    with self.graph.as_default():
      params = parameters.Parameters()
      inputs = [tf.constant(a, tf.float32) for a in arrays]
      context = contexts.Context(params, True, has_float16, on_gpu)
      context.begin(kind)
      tops = network.OF_TYPE[kind].build(context, layer, *map(context.cast, inputs))
      tops = tops if isinstance(tops, list) else [tops]
      self.assertEqual({t.dtype for t in tops}, {tf.float16 if has_float16 else tf.float32})
      # Random weights in the sum, so that all gradients differ.
      factors = [random.randn(_BATCH * s.rows, *s.dims) for s in layer.out_shapes]
      total = tf.add_n([tf.reduce_sum(tf.cast(t, tf.float32) * f.astype(np.float32))
                        for t, f in zip(tops, factors)])
      trained = list(params.trained)
      slopes = [tf.zeros_like(x) if s is None else s for x, s in zip(
          inputs + trained, tf.gradients(total, inputs + trained))]
      if on_gpu:
        self.assertNotIn("BiasAddGrad", {t.op.type for t in slopes})
      self.session.run(
          [v.initializer for v in trained] +
          [v.initializer for r in params.running for v in (r.mean, r.variance)])
      found, values, found_slopes = self.session.run([tops, trained, slopes])
    values = [v.astype(np.float64) for v in values]
    arrays = [a.astype(np.float32).astype(np.float64) for a in arrays]

    def run():
      out = expected(layer.params, arrays, values)
      return out if isinstance(out, list) else [out]

    def weighted():
      return sum(np.sum(t * f) for t, f in zip(run(), factors))

    for top, right, shape in zip(found, run(), layer.out_shapes):
      self.assertEqual(top.shape, (_BATCH * shape.rows,) + shape.dims)
      np.testing.assert_allclose(top, right, *tolerance)
    right = oracle.gradients(weighted, arrays + values)
    for one, other in zip(found_slopes, right):
      self.assertEqual(one.dtype, np.float32)
      np.testing.assert_allclose(one, other, *of_slopes)

  def test_a_network_in_float16_casts_between_layers(self):
    tops = {"x": [3], "label": [1]}
    layers, shape = [], shapes.Shape(1, (3,))
    for name, kind, clause in (
        ("a", "InnerProduct", {"fc_param": {"num_output": 4}}),
        ("b", "BatchNorm", {"bn_param": {"factor": .5, "eps": 1e-3}}),
        ("c", "InnerProduct", {"fc_param": {"num_output": 1}})):
      clause = dict(clause, type=kind)
      out = network.OF_TYPE[kind].shape([shape], clause)
      layers.append(models.Layer(name, kind, [layers[-1].name if layers else "x"], [name],
                                 [shape], out, clause))
      shape = out[0]
    loss = models.Layer("loss", "BinaryCrossEntropyLoss", ["c", "label"], ["loss"], [shape,
                        shape], None, {})
    with self.graph.as_default():
      tensors = {k: tf.ones([_BATCH] + v) for k, v in tops.items()}
      params = parameters.Parameters()
      found, _ = network.build(models.Model(None, [], layers, [loss], None, None), tensors,
                               params, True, has_float16=True)
      self.assertEqual([tensors[k].dtype for k in "abc"],
                       [tf.float16, tf.float32, tf.float16])
      self.assertEqual(found.predictions.dtype, tf.float32)
      self.assertEqual({v.dtype.base_dtype for v in params.trained}, {tf.float32})

  @parameterized.parameters(*_LOSSES)
  def test_loss(self, kind, width, clause, expected):
    label_width = 1 if width == 2 else width
    layer = _layer(kind, [[width], [label_width]], clause)
    random = np.random.RandomState(width)
    logits = random.randn(_BATCH, width).astype(np.float32).astype(np.float64)
    label = random.randint(0, 2, [_BATCH, label_width]).astype(np.float32)
    if width == 3:
      label[1, 2] = -1.
    with self.graph.as_default():
      given = tf.constant(logits, tf.float32)
      loss = network.OF_TYPE[kind].build(None, layer, given, tf.constant(label))
      mean = tf.reduce_mean(loss.per_sample)
      found, slope, predictions = self.session.run(
          [mean, tf.gradients(mean, given)[0], loss.predictions])
    self.assertEqual(predictions.shape, (_BATCH, label_width))
    np.testing.assert_allclose(found, expected(layer.params, logits, label), rtol=1e-5)
    right, = oracle.gradients(lambda: expected(layer.params, logits, label), [logits])
    np.testing.assert_allclose(slope, right, rtol=1e-3, atol=1e-5)
    if width == 2:
      right = np.exp(logits[:, 1:]) / np.exp(logits).sum(1, keepdims=True)
    else:
      right = oracle.sigmoid({}, [logits], [])
    np.testing.assert_allclose(predictions, right, rtol=1e-5)

  @parameterized.product(case=_LOSSES, has_own=[False, True])
  def test_loss_over_several_rows_of_a_sample(self, case, has_own):
    kind, width, clause, expected = case
    rows, each = 3, 1 if width == 2 else width
    bottoms = [shapes.Shape(rows, (width,)),
               shapes.flat(rows * each if has_own else each)]
    clause = dict(clause, type=kind)
    layer = models.Layer("a layer", kind, [], [], bottoms,
                         network.OF_TYPE[kind].shape(bottoms, clause), clause)
    random = np.random.RandomState(width)
    logits = random.randn(rows * _BATCH, width).astype(np.float32).astype(np.float64)
    label = random.randint(0, 2, [_BATCH, bottoms[1].width]).astype(np.float32)
    of_rows = (label.reshape([-1, each]) if has_own else np.repeat(label, rows, axis=0))
    with self.graph.as_default():
      given = tf.constant(logits, tf.float32)
      loss = losses.of(None, layer, given, tf.constant(label))
      mean = tf.reduce_mean(loss.per_sample)
      sizes, found, slope, predictions = self.session.run(
          [tf.shape(loss.per_sample), mean, tf.gradients(mean, given)[0], loss.predictions])
    self.assertEqual(sizes.tolist(), [_BATCH])
    np.testing.assert_allclose(found, expected(layer.params, logits, of_rows), rtol=1e-5)
    right, = oracle.gradients(lambda: expected(layer.params, logits, of_rows), [logits])
    np.testing.assert_allclose(slope, right, rtol=1e-3, atol=1e-5)
    right = (np.exp(logits[:, 1:]) / np.exp(logits).sum(1, keepdims=True) if width == 2 else
             oracle.sigmoid({}, [logits], []))
    np.testing.assert_allclose(
        predictions, right.reshape(label.shape) if has_own else right, rtol=1e-5)

  def test_extreme_logits_give_finite_losses(self):
    layer = _layer("BinaryCrossEntropyLoss", [[1], [1]], {})
    with self.graph.as_default():
      given = tf.constant([[-200.], [200.]])
      loss = network.OF_TYPE[layer.type].build(None, layer, given, tf.constant([[1.], [0.]]))
      found, slope = self.session.run(
          [loss.per_sample, tf.gradients(loss.per_sample, given)[0]])
    np.testing.assert_allclose(found, [200., 200.])
    np.testing.assert_allclose(slope, [[-1.], [1.]])

  @parameterized.parameters(("L1", lambda w: np.abs(w).sum()),
                            ("L2", lambda w: (w ** 2).sum() / 2))
  def test_regularizer(self, kind, of_weight):
    layer = _layer("BinaryCrossEntropyLoss", [[1], [1]],
                   {"regularizer": kind, "lambda": 0.3})
    arrays = [np.array([1., -2., 3.]), np.array([[-4.]])]
    with self.graph.as_default():
      found = self.session.run(losses.regularization(
          layer, [tf.constant(a, tf.float32) for a in arrays], batch=8))
    self.assertAlmostEqual(found, 0.3 / 8 * sum(map(of_weight, arrays)), places=5)

  def test_dropout_keeps_the_mean_and_is_off_in_evaluation(self):
    layer = _layer("Dropout", [[1000]], {"rate": 0.25})
    with self.graph.as_default():
      ones = tf.ones([_BATCH, 1000])
      tops = [network.OF_TYPE["Dropout"].build(contexts.Context(None, t), layer, ones)
              for t in (True, False)]
      training, evaluation = self.session.run(tops)
    self.assertCountEqual(np.unique(training), [0., np.float32(1 / .75)])
    self.assertAlmostEqual(training.mean(), 1., delta=.05)
    np.testing.assert_array_equal(evaluation, 1.)

  def test_batch_norm_keeps_running_values_and_evaluates_with_them(self):
    layer = _layer("BatchNorm", [[2]], {"bn_param": {"factor": 0.25, "eps": 1e-3}})
    x = np.array([[1., 5.], [3., 9.], [5., 1.]])
    with self.graph.as_default():
      params = parameters.Parameters()
      given = tf.constant(x, tf.float32)
      training = contexts.Context(params, is_training=True)
      network.OF_TYPE["BatchNorm"].build(training, layer, given)
      evaluated = network.OF_TYPE["BatchNorm"].build(
          contexts.Context(params, is_training=False), layer, given)
      self.assertLen(params.trained, 2)
      running, = params.running
      self.session.run([v.initializer for v in
                        params.trained + [running.mean, running.variance]])
      for _ in range(2):
        self.session.run(training.updates)
      mean, variance, found = self.session.run(
          [running.mean, running.variance, evaluated])
    right_mean, right_variance = np.zeros(2), np.ones(2)
    for _ in range(2):
      right_mean = right_mean * .75 + x.mean(0) * .25
      right_variance = right_variance * .75 + x.var(0, ddof=1) * .25
    np.testing.assert_allclose(mean, right_mean, rtol=1e-6)
    np.testing.assert_allclose(variance, right_variance, rtol=1e-6)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 1e-3), rtol=1e-5)

  def test_batch_norm_keeps_the_variance_that_fused_batch_norm_keeps(self):
    """TensorFlow's variance, which is cuDNN's on a GPU: over rows - 1."""
    x = np.random.RandomState(1).randn(5, 3).astype(np.float32)
    layer = _layer("BatchNorm", [[3]], {"bn_param": {"factor": 1.0, "eps": 1e-3}})
    with self.graph.as_default():
      params = parameters.Parameters()
      context = contexts.Context(params, is_training=True)
      given = network.OF_TYPE["BatchNorm"].build(context, layer, tf.constant(x))
      right, mean, variance = tf.compat.v1.nn.fused_batch_norm(
          x[:, None, None, :], [1.] * 3, [0.] * 3, epsilon=1e-3)
      running, = params.running
      self.session.run([v.initializer for v in
                        params.trained + [running.mean, running.variance]])
      self.session.run(context.updates)
      found = self.session.run([running.mean, running.variance, given])
      expected = self.session.run([mean, variance, right[:, 0, 0, :]])
    for one, other in zip(found, expected):
      np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

  def test_reshape_of_a_reshape_comes_back(self):
    layer = _layer("Reshape", [[3, 2]], {"leading_dim": 2})
    self.assertEqual(layer.out_shapes, [shapes.Shape(3, (2,))])
    back = network.OF_TYPE["Reshape"].shape(layer.out_shapes, {"leading_dim": 6})
    self.assertEqual(back, [shapes.Shape(1, (6,))])

  def test_parameters_are_made_once_and_keep_their_order(self):
    with self.graph.as_default():
      params = parameters.Parameters()
      zeros = initializers.zeros
      first = params.get("fc 1", "weight", [2], zeros)
      second = params.get("fc 1", "bias", [2], zeros)
      self.assertIs(params.get("fc 1", "weight", [2], zeros), first)
    self.assertEqual(params.trained, [first, second])


if __name__ == "__main__":
  absltest.main()
