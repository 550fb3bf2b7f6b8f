# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests errors of wrong use: each names the layer or argument, and changes nothing."""


from absl.testing import absltest
from absl.testing import parameterized

import hugectr
from hugectr.api import small_scripts


def _layer(kind, bottoms, tops, **arguments):
  return hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops, **arguments)


class WrongUseTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/wrong_use_test"
    small_scripts.write_norm(cls.folder)

  def model(self, **reader):
    found = hugectr.Model(small_scripts.solver(), small_scripts.reader(self.folder, **reader),
                          hugectr.CreateOptimizer())
    self.addCleanup(found.close)
    return found

  @parameterized.parameters(
      (("ReLU", ["fc"], ["x"], {}),
       r"layers\[4\] \('x', ReLU\).bottom: there is no tensor 'fc'"),
      (("ReLU", ["bot"], ["x"], {}), "no tensor 'bot'; did you mean 'both'?"),
      (("ReLU", ["keys"], ["x"], {}), "'keys' is a sparse input: only an embedding takes it"),
      (("ReLU", ["both"], ["flat"], {}), "there is already a tensor 'flat'"),
      (("Reshape", ["rows"], ["x"], {"leading_dim": 5}),
       "'x', Reshape.*must divide the 16 numbers of a sample.*got 5"),
      (("Concat", ["rows", "dense"], ["x"], {}), "'x', Concat.*bottoms: expected agreement"),
      (("InnerProduct", ["both"], ["x"], {"num_output": 0}),
       r"layers\[4\] \('x'\).fc_param.num_output: expected a number of at least 1, got 0"),
      (("MultiCross", ["both"], ["x"], {}), "num_layers: expected a number of at least 1"),
      (("Slice", ["both"], ["x", "y"], {"ranges": [(0, 3), (3, 30)]}),
       r"range \[3, 30\) is not within the 19 columns"),
      (("Slice", ["both"], ["x"], {"ranges": [(0, 3), (3, 5)]}), "expected 2, got 1 names"),
      (("Add", ["both", "dense"], ["x"], {}), "bottoms: expected one shape"),
      (("Sub", ["both"], ["x"], {}), "'x'.*bottom: expected"),
      (("WeightMultiply", ["dense"], ["x"], {"weight_dims": [4, 2]}), "got 4"),
      (("ReLU", ["label"], ["x"], {}), "expected the label 'label' as the second bottom"),
      (("BinaryCrossEntropyLoss", ["both", "label"], ["x"], {}),
       r"the first bottom: expected \[batch, 1\], got \[batch, 19\]"),
      (("ReLU", [], ["x"], {}), "'x'"),
      (("ReLU", ["both"], [], {}), "top"))
  def test_a_layer_that_does_not_fit(self, layer, expected):
    kind, bottoms, tops, arguments = layer
    model = self.model()
    small_scripts.add_inputs(model)
    with self.assertRaisesRegex(hugectr.ConfigError, expected):
      model.add(_layer(kind, bottoms, tops, **arguments))
    small_scripts.add_dcn(model)  # nothing has changed
    model.summary()

  def test_arguments_of_layers(self):
    with self.assertRaisesRegex(TypeError, r"DenseLayer 'x' \(InnerProduct\): there is no "
                                "argument 'num_outpt'; did you mean 'num_output'?"):
      _layer("InnerProduct", ["both"], ["x"], num_outpt=3)
    with self.assertRaisesRegex(TypeError, "layer_type: expected a member of hugectr.Layer_t"):
      hugectr.DenseLayer("ReLU", ["both"], ["x"])
    with self.assertRaisesRegex(TypeError, "weight_init_type: expected a member of "
                                "hugectr.Initializer_t"):
      _layer("InnerProduct", ["both"], ["x"], weight_init_type="Zero")
    _layer("BinaryCrossEntropyLoss", ["a", "b"], ["x"], use_regularizer=True,
           **{"lambda": 0.1})

  def test_order_of_adding(self):
    model = self.model()
    with self.assertRaisesRegex(hugectr.ConfigError, "expected an Input first"):
      model.add(_layer("ReLU", ["a"], ["b"]))
    for call in (model.compile, model.summary):
      with self.assertRaisesRegex(hugectr.ConfigError, "no Input has been added"):
        call()
    small_scripts.add_inputs(model)
    with self.assertRaisesRegex(hugectr.ConfigError, "there is already an Input"):
      small_scripts.add_inputs(model)
    with self.assertRaisesRegex(hugectr.ConfigError, "expected losses as the last layers"):
      model.compile()
    with self.assertRaisesRegex(RuntimeError, r"call compile\(\) first"):
      model.fit()
    with self.assertRaisesRegex(TypeError, "expected an Input, SparseEmbedding"):
      model.add("ReLU")
    small_scripts.add_dcn(model)
    with self.assertRaisesRegex(hugectr.ConfigError, "there is no label 'lable'; labels are "
                                "label"):
      model.compile(["lable"], [1.])
    with self.assertRaisesRegex(hugectr.ConfigError, "expected 1 loss_weights.*got 2"):
      model.compile(["label"], [1., 2.])
    with self.assertRaisesRegex(hugectr.ConfigError, "loss_weights need loss_names"):
      model.compile(loss_weights=[1.])
    model.compile()
    with self.assertRaisesRegex(RuntimeError, "the model is compiled"):
      model.add(_layer("ReLU", ["a"], ["b"]))
    with self.assertRaisesRegex(ValueError, "max_iter: expected at least 1"):
      model.fit(max_iter=0)
    with self.assertRaisesRegex(RuntimeError, "repeat_dataset: expected False"):
      model.set_source("a")

  def test_sizes_of_slots(self):
    model = self.model(data_reader_type=hugectr.DataReaderType_t.Parquet,
                       slot_size_array=[10, 10])
    with self.assertRaisesRegex(hugectr.ConfigError, "slot_size_array: expected 4 numbers.*"
                                "got 2"):
      small_scripts.add_inputs(model)
    model = self.model()
    with self.assertRaisesRegex(hugectr.ConfigError, "'rows', Localized.*expected 4 numbers, "
                                "one per slot of 'keys', got 3"):
      small_scripts.add_inputs(
          model, embedding_type=hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash,
          slot_size_array=[1, 2, 3])
    with self.assertRaisesRegex(ValueError, "'keys': nnz_per_slot: expected 4 numbers"):
      hugectr.DataReaderSparseParam("keys", [1, 2], True, 4)

  def test_combiner(self):
    with self.assertRaisesRegex(hugectr.ConfigError, "combiner: expected one of .*got \"max\""):
      small_scripts.add_inputs(self.model(), combiner="max")

  def test_labels_that_the_files_do_not_have(self):
    model = self.model()
    model.add(hugectr.Input(2, "label", small_scripts.DENSE, "dense", [
        hugectr.DataReaderSparseParam("keys", 1, True, small_scripts.SLOTS)]))
    model.add(hugectr.SparseEmbedding(
        hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 1, 4, "sum", "rows", "keys"))
    model.add(_layer("Reshape", ["rows"], ["flat"], leading_dim=16))
    model.add(_layer("InnerProduct", ["flat"], ["logit"], num_output=2))
    model.add(_layer("MultiCrossEntropyLoss", ["logit", "label"], ["loss"],
                     target_weight_vec=[.5, .5]))
    model.compile()
    with self.assertRaisesRegex(hugectr.DataError, "0.data.*label"):
      model.fit(max_iter=1)

  @parameterized.parameters(
      ({"batchsize": 0}, "batchsize: expected an integer of at least 1, got 0"),
      ({"batchsize": 50, "vvgpu": [[0, 1, 2]]}, "batchsize: expected a multiple of the 3"),
      ({"vvgpu": [[0, 0]]}, "vvgpu: expected a list of different"),
      ({"lr": -1}, "lr: expected a number of at least 0, got -1"),
      ({"decay_power": .5}, "decay_power: expected a number of at least 1"),
      ({"metrics_spec": {"AUC": 1.}}, "a key of metrics_spec: expected a member of "
       "hugectr.MetricsType"),
      ({"scaler": 0, "use_mixed_precision": True}, "scaler: expected a positive number"),
      ({"use_mixed_precision": True, "enable_tf32_compute": True}, "exclude each other"))
  def test_solver(self, arguments, expected):
    with self.assertRaisesRegex((ValueError, TypeError), "CreateSolver: .*" + expected):
      hugectr.CreateSolver(**arguments)

  def test_what_is_not_in_this_package(self):
    with self.assertRaisesRegex(TypeError, "kafka_brockers: expected a string"):
      hugectr.CreateSolver(kafka_brockers=["a:9092"])
    for kind in ("HDFS", "S3", "GCS"):
      source = hugectr.DataSourceParams(getattr(hugectr.FileSystemType_t, kind), "host", 1)
      with self.assertRaisesRegex(NotImplementedError, "does not read %s; copy" % kind):
        small_scripts.reader(self.folder, data_source_params=source)
    with self.assertRaisesRegex(RuntimeError, "vvgpu names 4 devices, but 1 process is "
                                "running.*horovodrun -np 4 -H HOST1:2,HOST2:2"):
      hugectr.Model(small_scripts.solver(batchsize=40, vvgpu=[[0, 1], [0, 1]]),
                    small_scripts.reader(self.folder), hugectr.CreateOptimizer())

  def test_reader(self):
    with self.assertRaisesRegex(ValueError, "eval_source: expected a path, got ''"):
      small_scripts.reader(self.folder, eval_source="")
    with self.assertRaisesRegex(TypeError, "check_type is missing"):
      hugectr.DataReaderParams(hugectr.DataReaderType_t.Norm, "a", eval_source="b")
    with self.assertRaisesRegex(TypeError, "dense_name is missing"):
      hugectr.Input(1, "label", 3)
    with self.assertRaisesRegex(ValueError, "label_weights: expected 2 numbers"):
      hugectr.Input(label_dims=[1, 1], label_names=["a", "b"], label_weights=[1.],
                    dense_dim=1, dense_name="d", data_reader_sparse_param_array=[])

  def test_several_sources_need_a_training_cache(self):
    with self.assertRaisesRegex(ValueError, "expected one source, got 2: a, b; several need "
                                "an embedding training cache"):
      self.model(source=["a", "b"])
    model = self.model(source=["a"])
    small_scripts.add_inputs(model)

  def test_a_wrong_eval_source_leaves_both_sources(self):
    model = small_scripts.dcn(self.folder, repeat_dataset=False)
    self.addCleanup(model.close)
    model.compile()
    train, val = (self.folder + "/" + part + "/_file_list.txt" for part in ("train", "val"))
    model.start_data_reading()
    with self.assertRaises(hugectr.DataError):
      model.set_source(val, self.folder + "/none")
    batches = 0
    while model.train():
      batches += 1
    self.assertEqual(batches, 8)  # of the training data
    model.set_source(val, train)
    self.assertTrue(model.train())

  def test_solver_is_read_only(self):
    solver = hugectr.CreateSolver()
    with self.assertRaisesRegex(AttributeError, "read-only: 'lr' cannot be set"):
      solver.lr = 1
    with self.assertRaisesRegex(AttributeError, "no attribute 'rate'"):
      solver.rate  # pylint: disable=pointless-statement


if __name__ == "__main__":
  absltest.main()
