# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

from sparse_operation_kit.exchange import arguments


def _ids():
  return tf.SparseTensor([[0, 0]], tf.constant([7], tf.int64), [1, 1])


def _read(*args, **kwargs):
  names = ["params", "sp_ids", "sp_weights", "combiners", "hotness", "indices"]
  values = dict.fromkeys(names)
  values.update(zip(names, args))
  values.update(kwargs)
  return arguments.read(**values)


class ArgumentsTest(parameterized.TestCase):

  def setUp(self):
    super(ArgumentsTest, self).setUp()
    arguments._hotness_warned = False  # pylint: disable=protected-access

  def test_todays_order(self):
    ids, weights = _ids(), _ids()
    got = _read(["a"], [ids], [weights], ["sum"])
    self.assertEqual(got.params, ["a"])
    self.assertIs(got.sp_ids[0], ids)
    self.assertIs(got.sp_weights[0], weights)
    self.assertEqual(got.combiners, ["sum"])
    self.assertTrue(got.is_list)

  def test_one_variable_without_lists(self):
    got = _read("a", _ids(), _ids(), "sum")
    self.assertEqual((len(got.params), len(got.sp_ids), len(got.sp_weights)),
                     (1, 1, 1))
    self.assertFalse(got.is_list)

  def test_a_tuple_is_a_list(self):
    self.assertTrue(_read(("a",), (_ids(),)).is_list)

  def test_sparse_tensor_value_is_one_set_of_ids(self):
    value = tf.compat.v1.SparseTensorValue([[0, 0]], [7], [1, 1])
    got = _read("a", value, value)
    self.assertFalse(got.is_list)
    self.assertIs(got.sp_ids[0], value)
    self.assertIs(got.sp_weights[0], value)

  def test_list_of_variable_with_bare_ids(self):
    got = _read(["a"], _ids())
    self.assertFalse(got.is_list)

  def test_default_combiner_is_mean(self):
    self.assertEqual(_read(["a", "b"], [_ids(), _ids()]).combiners,
                     ["mean", "mean"])

  @parameterized.parameters(
      ("sum", "sum"), ("Sum", "sum"), ("SUM", "sum"), ("mean", "mean"),
      ("Mean", "mean"), ("MEAN", "mean"), ("average", "mean"),
      ("Average", "mean"), ("AVERAGE", "mean"), ("max", "max"), ("Max", "max"),
      ("MAX", "max"))
  def test_spellings(self, spelling, combiner):
    self.assertEqual(_read(["a"], [_ids()], combiners=[spelling]).combiners,
                     [combiner])

  @parameterized.parameters("sqrtn", "concat", "sUm", "", 1, None)
  def test_other_combiners_are_named_with_their_variable(self, combiner):
    with self.assertRaisesRegex(ValueError, "variable 'b': expected 'sum', 'mean' or 'max'"):
      _read(["a", "b"], [_ids(), _ids()], combiners=["sum", combiner])

  @parameterized.parameters((["sum", "mean"],), ("sum",))
  def test_combiners_as_third_positional(self, combiners):
    count = len(combiners) if isinstance(combiners, list) else 1
    got = _read(["a"] * count, [_ids()] * count, combiners)
    self.assertEqual(got.combiners,
                     combiners if isinstance(combiners, list) else [combiners])
    self.assertIsNone(got.sp_weights)

  @parameterized.parameters(([1, 10],), (3,), ((1, 2),))
  def test_hotness_as_third_positional_is_ignored(self, hotness):
    count = 1 if isinstance(hotness, int) else len(hotness)
    got = _read(["a"] * count, [_ids()] * count, hotness, ["sum"] * count)
    self.assertIsNone(got.sp_weights)
    self.assertEqual(got.combiners, ["sum"] * count)

  def test_hotness_warns_once(self):
    with mock.patch.object(tf.compat.v1.logging, "warning") as warning:
      _read(["a"], [_ids()], hotness=[5])
      _read(["a"], [_ids()], [5])
    self.assertEqual(warning.call_count, 1)
    self.assertIn("hotness", warning.call_args[0][0])

  def test_indices_is_sp_ids(self):
    ids = _ids()
    self.assertIs(_read(["a"], indices=[ids]).sp_ids[0], ids)

  def test_weights_that_are_all_none_are_no_weights(self):
    self.assertIsNone(_read(["a"], [_ids()], [None]).sp_weights)

  def test_twice_the_same_argument(self):
    with self.assertRaisesRegex(TypeError, "indices is the former name"):
      _read(["a"], [_ids()], indices=[_ids()])
    with self.assertRaisesRegex(TypeError, "combiners are given twice"):
      _read(["a"], [_ids()], ["sum"], ["sum"])
    with self.assertRaisesRegex(TypeError, "hotness is given twice"):
      _read(["a"], [_ids()], [1], hotness=[1])

  def test_missing_ids(self):
    with self.assertRaisesRegex(TypeError, "sp_ids is missing"):
      _read(["a"])

  def test_numbers_differ(self):
    with self.assertRaisesRegex(ValueError, "got 2 variables and 1 sp_ids"):
      _read(["a", "b"], [_ids()])
    with self.assertRaisesRegex(ValueError, "one sp_weights per sp_ids, got 1 and 2"):
      _read(["a", "b"], [_ids(), _ids()], [_ids()])
    with self.assertRaisesRegex(ValueError, "expected 2 combiners"):
      _read(["a", "b"], [_ids(), _ids()], combiners="sum")
    with self.assertRaisesRegex(ValueError, "params is empty"):
      _read([], [])

  @parameterized.parameters(5, "x", None)
  def test_ids_of_another_type_name_the_variable(self, ids):
    with self.assertRaisesRegex(TypeError, "ids of variable 'a': expected a Sparse"):
      _read(["a"], [ids])

  def test_ids_of_rank_3_name_the_variable(self):
    ids = tf.compat.v1.SparseTensorValue([[0, 1, 0]], [5], [1, 2, 1])
    for wrong in (ids, tf.SparseTensor.from_value(ids),
                  tf.ragged.constant([[[5]]], dtype=tf.int64)):
      with self.assertRaisesRegex(ValueError, "ids of variable 'a': expected the shape "
                                  r"\[batch, ids\], of rank 2, got a .* of rank 3"):
        _read(["a"], [wrong])
    self.assertLen(_read(["a"], [_ids()]).sp_ids, 1)


if __name__ == "__main__":
  absltest.main()
