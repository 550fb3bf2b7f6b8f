# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests DenseLayer: arguments become clauses, and every type can be added."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr.api import small_scripts
from hugectr.config import model as models

# Type, bottoms, arguments, shapes of the tops. Tensors: "both" [batch, 19], "rows"
# [batch, 4, 4], "one" [batch, 1], "dense" [batch, 3].
_CASES = (
    ("Add", ["both", "both"], {}, ["[batch, 19]"]),
    ("BatchNorm", ["both"], {"factor": .9, "eps": 1e-4}, ["[batch, 19]"]),
    ("Cast", ["both"], {}, ["[batch, 19]"]),
    ("Concat", ["rows", "rows"], {"axis": 2}, ["[batch, 4, 8]"]),
    ("DotProduct", ["both", "both"], {}, ["[batch, 19]"]),
    ("Dropout", ["both"], {"dropout_rate": .1}, ["[batch, 19]"]),
    ("ELU", ["both"], {"elu_alpha": .5}, ["[batch, 19]"]),
    ("ElementwiseMultiply", ["rows", "rows"], {}, ["[batch, 4, 4]"]),
    ("FmOrder2", ["flat"], {"out_dim": 4}, ["[batch, 4]"]),
    ("FusedInnerProduct", ["both"], {"num_output": 5}, ["[batch, 5]"]),
    ("FusedReshapeConcat", ["rows", "rows"], {}, ["[batch * 3, 8]", "[batch, 8]"]),
    ("FusedReshapeConcatGeneral", ["rows", "rows"], {}, ["[batch * 4, 8]"]),
    ("GRU", ["flat"], {"num_output": 3, "SeqLength": 4, "vector_size": 4, "batchsize": 9},
     ["[batch, 3]"]),
    ("Gather", ["both"], {"indices": [3, 1]}, ["[batch, 2]"]),
    ("InnerProduct", ["rows"], {"num_output": 7}, ["[batch, 4, 7]"]),
    ("Interaction", ["four", "rows"], {}, ["[batch, 15]"]),
    ("LayerNorm", ["rows"], {"eps": 1e-4}, ["[batch, 4, 4]"]),
    ("MLP", ["both"], {"num_outputs": [8, 2],
                       "activations": [hugectr.Activation_t.Relu, hugectr.Activation_t.Non],
                       "biases": [True, False]}, ["[batch, 2]"]),
    ("MatrixMultiply", ["rows", "rows"], {}, ["[batch, 4, 4]"]),
    ("MultiCross", ["both"], {"num_layers": 2, "projection_dim": 3}, ["[batch, 19]"]),
    ("MultiHeadAttention", ["rows", "rows", "rows"], {"num_attention_heads": 2},
     ["[batch, 4, 4]"]),
    ("PReLU_Dice", ["both"], {"elu_alpha": .2, "eps": 1e-6}, ["[batch, 19]"]),
    ("ReLU", ["rows"], {}, ["[batch, 4, 4]"]),
    ("ReduceMean", ["rows"], {"axis": 2}, ["[batch, 4, 1]"]),
    ("ReduceSum", ["rows"], {"axis": 1}, ["[batch, 1, 4]"]),
    ("Reshape", ["flat"], {"leading_dim": 2, "time_step": 8}, ["[batch, 8, 2]"]),
    ("Reshape", ["flat"], {"shape": [-1, 8]}, ["[batch * 2, 8]"]),
    ("Reshape", ["rows"], {"selected": True, "selected_slots": [2, 0]}, ["[batch, 8]"]),
    ("Scale", ["four"], {"axis": 0, "factor": 3}, ["[batch, 12]"]),
    ("Select", ["rows"], {"dim": 1, "index": [3]}, ["[batch, 1, 4]"]),
    ("SequenceMask", ["one", "one"], {"max_sequence_len_from": 2, "max_sequence_len_to": 3},
     ["[batch, 1, 2, 3]"]),
    ("SequenceMask", ["one"], {"max_sequence_len": 3}, ["[batch, 1, 1, 3]"]),
    ("Sigmoid", ["both"], {}, ["[batch, 19]"]),
    ("Slice", ["both"], {"ranges": [(0, 5), (2, 19)]}, ["[batch, 5]", "[batch, 17]"]),
    ("Softmax", ["rows", "rows"], {"factor": .5}, ["[batch, 4, 4]"]),
    ("Sub", ["both", "both"], {}, ["[batch, 19]"]),
    ("WeightMultiply", ["dense"], {"weight_dims": [3, 2]}, ["[batch, 6]"]),
)
_LOSSES = ("BinaryCrossEntropyLoss", "CrossEntropyLoss", "MultiCrossEntropyLoss")


class DenseLayerTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/dense_layer_test"
    small_scripts.write_norm(cls.folder)

  def empty(self):
    model = hugectr.Model(small_scripts.solver(), small_scripts.reader(self.folder),
                          hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
    self.addCleanup(model.close)
    return model

  def model(self):
    model = self.empty()
    small_scripts.add_inputs(model)
    layer = hugectr.Layer_t
    for name, width in (("one", 1), ("four", 4)):
      model.add(hugectr.DenseLayer(layer.InnerProduct, ["dense"], [name],
                                   num_output=width))
    return model

  def test_every_type_has_a_case(self):
    self.assertCountEqual({case[0] for case in _CASES} | set(_LOSSES),
                          hugectr.Layer_t.__members__)

  def test_all_types_in_one_model_train_and_go_through_the_json(self):
    model = self.model()
    shapes = {}
    ends = []
    for k, (kind, bottoms, arguments, expected) in enumerate(_CASES):
      tops = ["top_%d_%d" % (k, t) for t in range(len(expected))]
      model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops,
                                   **arguments))
      for top, shape in zip(tops, expected):
        shapes[top] = shape
        width = 1
        for part in shape[len("[batch"):-1].replace(" ", "").replace("*", "").split(","):
          width *= int(part or 1)
        model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, [top], ["flat_" + top],
                                     leading_dim=width))
        model.add(hugectr.DenseLayer(hugectr.Layer_t.InnerProduct, ["flat_" + top],
                                     ["end_" + top], num_output=1))
        ends.append("end_" + top)
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Add, ends, ["logit"]))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss,
                                 ["logit", "label"], ["loss"]))
    path = self.create_tempdir().full_path + "/graph.json"
    model.graph_to_json(path)
    found, _ = models.read(path)
    for layer in found.layers:
      for top, shape in zip(layer.tops, layer.out_shapes):
        self.assertEqual(str(shape), shapes.get(top, str(shape)), top)
    model.compile()
    model.fit(max_iter=3, display=0, eval_interval=3, snapshot=0)
    self.assertFalse(np.isnan(model.get_current_loss()))
    again = self.empty()
    again.construct_from_json(path)
    self.assertEqual(again._configuration(), model._configuration())  # pylint: disable=protected-access

  def test_older_forms_of_attention(self):
    model = self.model()
    layer = hugectr.Layer_t
    for kind, bottoms, tops, arguments in (
        (layer.MultiHeadAttention, ["rows"] * 3, ["whole"], {"num_attention_heads": 2}),
        # 4.3 to 23.08: two layers, with a Softmax between them.
        (layer.MultiHeadAttention, ["rows"] * 3, ["scores", "value"],
         {"num_attention_heads": 2, "transpose_b": True}),
        (layer.Softmax, ["scores"], ["shares"], {}),
        (layer.MultiHeadAttention, ["shares", "value"], ["mixed"], {"transpose_b": False}),
        # Before 4.3.
        (layer.MultiHeadAttention, ["rows"] * 2, ["products"], {"num_attention_heads": 2}),
        (layer.Reshape, ["mixed"], ["flat_mixed"], {"leading_dim": 16}),
        (layer.Reshape, ["products"], ["flat_products"], {"leading_dim": 32}),
        (layer.Reshape, ["whole"], ["flat_whole"], {"leading_dim": 16}),
        (layer.Concat, ["flat_mixed", "flat_products", "flat_whole"], ["all"], {}),
        (layer.InnerProduct, ["all"], ["logit"], {"num_output": 1}),
        (layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"], {})):
      model.add(hugectr.DenseLayer(kind, bottoms, tops, **arguments))
    model.compile()
    model.eval()
    found = {name: model.check_out_tensor(name, hugectr.Tensor_t.Evaluate)
             for name in ("whole", "mixed", "scores", "products", "value")}
    self.assertEqual([found[name].shape for name in ("scores", "value")],
                     [(40, 2, 4, 4), (40, 2, 4, 2)])
    np.testing.assert_allclose(found["mixed"], found["whole"], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found["products"] / 2 ** .5, found["scores"], rtol=1e-5)

  @parameterized.parameters(
      (["rows", "rows"], {"transpose_b": True}, ["a", "b"], "expected 3 bottoms with transpose"),
      (["rows", "rows", "rows"], {"transpose_b": True}, ["a"], "expected 2, got 1 names"),
      (["rows", "rows"], {"num_attention_heads": 3}, ["a"], "must divide the width 4, got 3"))
  def test_wrong_older_attention(self, bottoms, arguments, tops, text):
    with self.assertRaisesRegex(hugectr.ConfigError, text):
      self.model().add(hugectr.DenseLayer(hugectr.Layer_t.MultiHeadAttention, bottoms, tops,
                                          **arguments))

  @parameterized.parameters(("Relu", "FusedInnerProduct"), ("Non", "InnerProduct"))
  def test_activation_of_a_fused_layer(self, activation, kind):
    layer = hugectr.DenseLayer(
        hugectr.Layer_t.FusedInnerProduct, ["a"], ["b"], num_output=2,
        act_type=getattr(hugectr.Activation_t, activation))
    self.assertEqual(layer.clause()["type"], kind)

  def test_regularizer(self):
    layer = hugectr.DenseLayer(
        hugectr.Layer_t.BinaryCrossEntropyLoss, ["a", "b"], ["x"], use_regularizer=True,
        regularizer_type=hugectr.Regularizer_t.L2, **{"lambda": .25})
    self.assertEqual(layer.clause(), {
        "type": "BinaryCrossEntropyLoss", "bottom": ["a", "b"], "top": "x",
        "regularizer": "L2", "lambda": .25})


if __name__ == "__main__":
  absltest.main()
