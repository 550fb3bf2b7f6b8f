# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import json
import os

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.ops import handle_ops
from embedding_variable import tf_names
from embedding_variable.variables import cache_strategies
from embedding_variable.variables import config_pb2 as config_pb2_lib
from embedding_variable.variables import options
from embedding_variable.variables import storages


class OptionsTest(parameterized.TestCase):

  def test_defaults_are_deeprecs(self):
    option = tf.EmbeddingVariableOption()
    self.assertEqual(option.ht_type, "")
    self.assertEqual(option.ht_partition_num, 1000)
    self.assertIsNone(option.evict)
    self.assertIsNone(option.ckpt)
    self.assertIsNone(option.filter_strategy)
    self.assertIsNone(option.init.initializer)
    self.assertEqual(option.init.default_value_dim, 4096)
    self.assertEqual(option.init.default_value_no_permission, 0.0)
    self.assertIsNone(option.storage_option.storage_type)
    self.assertIsNone(option.storage_option.storage_path)
    self.assertEqual(option.storage_option.storage_size, [1024**3] * 4)
    self.assertEqual(option.storage_option.cache_strategy, 1)
    self.assertIsNone(tf.GlobalStepEvict().steps_to_live)
    self.assertEqual(tf.L2WeightEvict().l2_weight_threshold, -1.0)
    self.assertEqual(tf.CounterFilter().filter_freq, 0)
    cbf = tf.CBFFilter()
    self.assertEqual((cbf.filter_freq, cbf.max_element_size,
                      cbf.false_positive_probability, cbf.counter_type),
                     (0, 0, -1.0, tf.uint64))

  def test_argument_names_become_attributes(self):
    evict, ckpt = tf.GlobalStepEvict(), tf.CheckpointOption()
    strategy, storage = tf.CounterFilter(), tf.StorageOption()
    init = tf.InitializerOption()
    option = tf.EmbeddingVariableOption(
        evict_option=evict, ckpt=ckpt, filter_option=strategy,
        storage_option=storage, init_option=init)
    self.assertIs(option.evict, evict)
    self.assertIs(option.ckpt, ckpt)
    self.assertIs(option.filter_strategy, strategy)
    self.assertIs(option.storage_option, storage)
    self.assertIs(option.init, init)

  def test_nothing_is_shared(self):
    sizes = [5]
    one, two = tf.StorageOption(storage_size=sizes), tf.StorageOption()
    one.storage_size[1] = 7
    self.assertEqual(sizes, [5])
    self.assertEqual(two.storage_size, [1024**3] * 4)
    self.assertIsNot(tf.EmbeddingVariableOption().storage_option,
                     tf.EmbeddingVariableOption().storage_option)
    self.assertIsNot(tf.EmbeddingVariableOption().init,
                     tf.EmbeddingVariableOption().init)

  @parameterized.parameters(
      (lambda: tf.InitializerOption(default_value_dim=None), ValueError,
       "default_value_dim: expected an integer, got None"),
      (lambda: tf.InitializerOption(default_value_dim=2.5), ValueError,
       "default_value_dim: expected an integer, got 2.5"),
      (lambda: tf.CBFFilter(3, max_element_size=5), ValueError,
       "positive together, got 5 and -1.0"),
      (lambda: tf.CBFFilter(3, 5, 0.1, counter_type=tf.float32), TypeError,
       "counter_type: expected one of .* got float32"),
      (lambda: tf.StorageOption(storage_size=5), ValueError, "expected a list"),
      (lambda: tf.StorageOption(storage_size=[1] * 5), ValueError, "5 entries"),
      (lambda: tf.StorageOption(storage_type=12), ValueError,
       "DRAM_SSDHASH needs a storage_path"),
      (lambda: tf.StorageOption(max_capacity=0), ValueError,
       "max_capacity: expected an integer of at least 1, got 0"),
      (lambda: tf.StorageOption(max_capacity_bytes=1.5), ValueError,
       "max_capacity_bytes: .* got 1.5"),
  )
  def test_wrong_values(self, make, error, message):
    with self.assertRaisesRegex(error, message):
      make()

  @parameterized.parameters(0, -3)
  def test_default_value_dim_below_one_is_the_default(self, value):
    with absltest.mock.patch.object(options.logging, "warning") as warning:
      self.assertEqual(
          tf.InitializerOption(default_value_dim=value).default_value_dim, 4096)
    self.assertIn(value, warning.call_args[0])

  @parameterized.parameters(
      (tf.int64, tf.uint64), (tf.int8, tf.uint64), (tf.uint8, tf.uint8))
  def test_other_counters_become_uint64(self, given, taken):
    option = options.EmbeddingVariableOption(
        filter_option=tf.CBFFilter(2, 10, .1, counter_type=given))
    self.assertEqual(option.filter_strategy.counter_type, taken)
    options.check_supported("v", option)
    self.assertEqual(options.to_table_options("v", option).counter_bits,
                     8 * taken.size)

  def test_storage_of_rows(self):
    for storage_type, storage in ((None, "dram"), (1, "dram"), (6, "hbm"),
                                  ("auto", "auto")):
      option = options.EmbeddingVariableOption(
          storage_option=options.StorageOption(storage_type))
      options.check_supported("v", option)
      self.assertEqual(options.to_table_options("v", option).storage, storage)
      v = tf.get_embedding_variable("v%s" % storage_type, 2, ev_option=option)
      self.assertEqual(v.storage_type,
                       {"dram": 1, "hbm": 6}.get(storage, storage))

  @parameterized.parameters(
      ("storage", [s.name for s in storages.TABLE]),
      ("cache_strategy", [s.name for s in cache_strategies.TABLE]))
  def test_tables_have_what_the_op_accepts(self, attribute, names):
    for attr in tf_names.op_def("EvHandle").attr:
      if attr.name == attribute:
        allowed = [name.decode() for name in attr.allowed_values.list.s]
    self.assertCountEqual(allowed, names)

  def test_rows_in_files(self):
    path = self.create_tempdir().full_path
    for storage_type in (4, 12):
      option = options.EmbeddingVariableOption(
          storage_option=options.StorageOption(storage_type, path, [4096]))
      options.check_supported("v", option)
      self.assertEqual(
          options.to_table_options("a/v", option),
          handle_ops.TableOptions(
              storage="dram_ssd", storage_path=path, memory_bytes=4096))
      self.assertEqual(options.to_table_options("a/v/part_3", option).storage_path,
                       os.path.join(path, "part_3"))
      v = tf.get_embedding_variable("v%s" % storage_type, 2, ev_option=option)
      self.assertEqual(v.storage_type, 12)
    self.assertEqual(
        options.to_table_options("v", options.EmbeddingVariableOption()),
        handle_ops.TableOptions())
    option.storage_option.storage_size[0] = 0
    with self.assertRaisesRegex(ValueError, "'v': storage_size"):
      options.check_supported("v", option)

  def test_rows_in_two_memories(self):
    option = options.EmbeddingVariableOption(
        storage_option=options.StorageOption(13, storage_size=[4096, 1 << 40]))
    options.check_supported("v", option)
    self.assertEqual(options.to_table_options("v", option),
                     handle_ops.TableOptions(storage="hbm_dram", memory_bytes=4096))
    v = tf.get_embedding_variable("v", 2, ev_option=option)
    self.assertEqual(v.storage_type, 13)
    self.assertEqual(v.handle.op.get_attr("memory_bytes"), 4096)
    option.storage_option.storage_size[0] = 1.5
    with self.assertRaisesRegex(
        ValueError, "'v': storage_size.0., the bytes of rows in GPU memory.*1.5"):
      options.check_supported("v", option)

  def test_rows_in_three_memories(self):
    path = self.create_tempdir().full_path
    option = options.EmbeddingVariableOption(
        storage_option=options.StorageOption(102, path, [4096, 8192]))
    options.check_supported("v", option)
    self.assertEqual(
        options.to_table_options("v", option),
        handle_ops.TableOptions(
            storage="hbm_dram_ssd", storage_path=path, memory_bytes=4096,
            second_memory_bytes=8192))
    self.assertEqual(options.to_table_options("v/part_3", option).storage_path,
                     os.path.join(path, "part_3"))
    v = tf.get_embedding_variable("three", 2, ev_option=option)
    self.assertEqual(v.storage_type, 102)
    self.assertEqual(v.tier_stats().shape.as_list(), [12])
    option.storage_option.storage_size[1] = 0
    with self.assertRaisesRegex(
        ValueError, "'v': storage_size.1., the bytes of rows in CPU memory.* 0"):
      options.check_supported("v", option)
    # DeepRec's default for sizes that are not given.
    option = options.EmbeddingVariableOption(
        storage_option=options.StorageOption(102, path, [4096]))
    self.assertEqual(options.to_table_options("v", option).second_memory_bytes, 2**30)
    with self.assertRaisesRegex(ValueError, "HBM_DRAM_SSDHASH needs a storage_path"):
      options.StorageOption(102)

  def test_every_storage_type_has_a_storage(self):
    for name, number in config_pb2_lib.StorageType.items():
      path = self.create_tempdir().full_path
      option = options.EmbeddingVariableOption(
          storage_option=options.StorageOption(number, path))
      options.check_supported(name, option)
      self.assertIn(options.to_table_options(name, option).storage,
                    [s.name for s in storages.TABLE])

  @parameterized.parameters((2, "dram"), (3, "dram"), (11, "dram"), (5, "dram_ssd"),
                            (14, "dram_ssd"), (101, "dram_ssd"))
  def test_types_that_another_storage_answers(self, storage_type, storage):
    name = config_pb2_lib.StorageType.Name(storage_type)
    option = options.EmbeddingVariableOption(storage_option=options.StorageOption(
        storage_type, self.create_tempdir().full_path, [4096]))
    options._warned.discard(storage_type)  # pylint: disable=protected-access
    with self.assertLogs("tensorflow", "WARNING") as logs:
      options.check_supported("v", option)
      options.check_supported("w", option)
    self.assertLen(logs.records, 1)
    self.assertIn("'v': storage type %s: its rows are in" % name,
                  logs.records[0].getMessage())
    table = options.to_table_options("v", option)
    self.assertEqual(table.storage, storage)
    if storage == "dram_ssd":
      self.assertEqual(table.memory_bytes, 4096)
      with self.assertRaisesRegex(ValueError, name + " needs a storage_path"):
        options.StorageOption(storage_type)

  def test_storage_path_is_created(self):
    path = os.path.join(self.create_tempdir().full_path, "a", "b")
    tf.StorageOption(storage_type=12, storage_path=path)
    self.assertTrue(os.path.isdir(path))

  @parameterized.parameters(
      (dict(ckpt=options.CheckpointOption("/somewhere")), "CheckpointOption"),
  )
  def test_unsupported_options_are_named(self, kwargs, message):
    with self.assertRaisesRegex(
        NotImplementedError,
        "embedding variable 'v': this version does not have .*" + message):
      options.check_supported("v", options.EmbeddingVariableOption(**kwargs))

  @parameterized.parameters(
      ({},),
      (dict(filter_option=options.CounterFilter(0)),),
      (dict(evict_option=options.GlobalStepEvict()),),
      (dict(evict_option=options.L2WeightEvict()),),
      (dict(storage_option=options.StorageOption(0)),),
      (dict(storage_option=options.StorageOption(1)),),
      (dict(ckpt=options.CheckpointOption()),),
  )
  def test_options_that_are_off_are_accepted(self, kwargs):
    option = options.EmbeddingVariableOption(**kwargs)
    options.check_supported("v", option)
    self.assertEqual(options.to_table_options("v", option), handle_ops.TableOptions())

  @parameterized.parameters(
      (dict(filter_option=options.CounterFilter(3),
            init_option=options.InitializerOption(default_value_no_permission=.5)),
       dict(filter="counter", filter_freq=3, no_permission=.5)),
      (dict(filter_option=options.CBFFilter(2, 10, .1, tf.uint16)),
       dict(filter="bloom", filter_freq=2, max_element_size=10,
            false_positive_probability=.1, counter_bits=16)),
      # Rows in GPU memory have the same policies.
      (dict(storage_option=options.StorageOption(6, max_capacity=9),
            filter_option=options.CounterFilter(2),
            evict_option=options.L2WeightEvict(.5)),
       dict(filter="counter", filter_freq=2, max_rows=9,
            storage="hbm", l2_weight_threshold=.5)),
      # Without a size keys are counted exactly, as in DeepRec.
      (dict(filter_option=options.CBFFilter(2)),
       dict(filter="counter", filter_freq=2)),
      (dict(evict_option=options.GlobalStepEvict(10)), dict(steps_to_live=10)),
      (dict(evict_option=options.L2WeightEvict(.5)), dict(l2_weight_threshold=.5)),
      (dict(storage_option=options.StorageOption(max_capacity=7)),
       dict(max_rows=7)),
      (dict(storage_option=options.StorageOption(
          max_capacity_bytes=1000, cache_strategy=0)),
       dict(max_bytes=1000, cache_strategy="LRU")),
      (dict(storage_option=options.StorageOption(
          max_capacity=10, cache_strategy=2)),
       dict(max_rows=10, cache_strategy="FIFO")),
  )
  def test_policies(self, kwargs, expected):
    option = options.EmbeddingVariableOption(**kwargs)
    options.check_supported("v", option)
    self.assertEqual(options.to_table_options("v", option),
                     handle_ops.TableOptions(**expected))

  @parameterized.parameters(
      (dict(filter_option=options.CounterFilter(-1)), "filter_freq.* got -1"),
      (dict(filter_option=options.CounterFilter(2.5)), "filter_freq.* got 2.5"),
      (dict(filter_option=options.CounterFilter(2**32)), "filter_freq"),
      (dict(filter_option=options.CBFFilter(2, 10, 1.5)),
       "false_positive_probability: .* got 1.5"),
      (dict(filter_option=options.CBFFilter(256, 10, .1, tf.uint8)),
       "counters of type uint8 cannot reach filter_freq=256"),
      (dict(evict_option=options.GlobalStepEvict(-5)), "steps_to_live: .* got -5"),
      (dict(evict_option=options.L2WeightEvict(float("nan"))),
       "l2_weight_threshold: expected a number, got nan"),
      (dict(init_option=options.InitializerOption(default_value_no_permission="0")),
       "default_value_no_permission: expected a number, got '0'"),
      (dict(storage_option=options.StorageOption(cache_strategy=77)),
       r"cache_strategy: expected a value of CacheStrategy \(LRU 0, LFU 1, FIFO 2\), got 77"),
      (dict(storage_option=options.StorageOption(cache_strategy="LRU")),
       "cache_strategy: .* got 'LRU'"),
      (dict(storage_option=options.StorageOption(cache_strategy=None)),
       "cache_strategy: .* got None"),
      (dict(storage_option=options.StorageOption(storage_type=True)),
       "storage_type: expected a value of StorageType .* got True"),
      (dict(storage_option=options.StorageOption(layout=3)), "layout: .* got 3"),
      (dict(ht_type=5), "ht_type: expected a string, got 5"),
      (dict(ht_partition_num="many"), "ht_partition_num: .* got 'many'"),
  )
  def test_invalid_numbers(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, "embedding variable 'v': .*" + message):
      options.check_supported("v", options.EmbeddingVariableOption(**kwargs))

  @parameterized.parameters(
      ("counter", TypeError, "expected an EmbeddingVariableOption"),
      (options.EmbeddingVariableOption(filter_option=3), TypeError, "filter_option"),
      (options.EmbeddingVariableOption(evict_option=3), TypeError, "evict_option"),
      (options.EmbeddingVariableOption(storage_option=3), TypeError,
       "storage_option"),
      (options.EmbeddingVariableOption(storage_option=options.StorageOption(77)),
       ValueError, "expected a value of StorageType .* got 77"),
      (options.EmbeddingVariableOption(init_option=3), TypeError, "init_option"),
  )
  def test_wrong_classes(self, option, error, message):
    with self.assertRaisesRegex(error, "'v': .*" + message):
      options.check_supported("v", option)

  @parameterized.parameters(
      options.GlobalStepEvict(5), options.L2WeightEvict(.5), options.CheckpointOption("a"),
      options.CounterFilter(3), options.CBFFilter(3, 100, .01, tf.uint8),
      options.StorageOption("auto", None, [1, 2], 0, "normal", 10, 20),
      options.InitializerOption(tf.keras.initializers.Ones(), 8, .5),
      options.EmbeddingVariableOption(
          "a", 3, options.GlobalStepEvict(5), options.CheckpointOption(),
          options.CounterFilter(3), options.StorageOption(max_capacity=7),
          options.InitializerOption(default_value_dim=1), tf.bfloat16, "nearest"))
  def test_a_config_is_plain_and_makes_an_equal_object(self, option):
    config = json.loads(json.dumps(options.to_config(option)))
    made = options.from_config(config)
    self.assertIs(type(option), type(made))
    self.assertEqual(config, options.to_config(made))
    plain = lambda x: {k: v for k, v in vars(x).items()
                       if isinstance(v, (int, float, str, list, tf.DType))}
    self.assertEqual(plain(option), plain(made))

  def test_a_config_of_something_else(self):
    with self.assertRaisesRegex(TypeError, "expected an EmbeddingVariableOption, got 3"):
      options.to_config(3)
    self.assertEqual(0, options.to_config(options.CounterFilter())["filter_freq"])

  def test_enums(self):
    # pylint: disable=g-import-not-at-top
    from tensorflow.core.framework.embedding import config_pb2
    self.assertEqual(config_pb2.StorageType.DRAM_SSDHASH, 12)
    self.assertEqual(config_pb2.HBM_DRAM_SSDHASH, 102)
    self.assertEqual(config_pb2.StorageType.Name(13), "HBM_DRAM")
    self.assertEqual(config_pb2.StorageType.Value("HBM"), 6)
    self.assertEqual(config_pb2.CacheStrategy.LFU, 1)
    self.assertEqual(config_pb2.CacheStrategy.LRU, 0)
    self.assertEqual(config_pb2.CacheStrategy.FIFO, 2)
    with self.assertRaises(ValueError):
      config_pb2.StorageType.Name(1000)


if __name__ == "__main__":
  absltest.main()
