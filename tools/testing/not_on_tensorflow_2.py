# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cases of tests for TensorFlow 1.15 that are skipped on 2.x, each with the reason.

v1_tensorflow.py applies the list to every test program that it runs.
"""

import collections
import fnmatch
import os
import sys
import unittest

# program: name of the test program. case: "Class.test_name", with wildcards. lacks:
# what TensorFlow has to lack, a key of _LACKS; None: skipped on every 2.x. why: the reason.
Exemption = collections.namedtuple("Exemption", ["program", "case", "lacks", "why"])

_CONTRIB = "tf.contrib is not in TensorFlow 2.x"
_SCALES = ("Keras's experimental loss scaling is not in TensorFlow 2.x, and the graph "
           "rewrite does not take Keras's optimizers")
_IDENTITY = "on 2.x tf.identity and the like return a table's gradient unchanged"
_ESTIMATORS = "this TensorFlow has no Estimators"

LIST = [
    Exemption("training_test", "LossScaleTest.test_dynamic_rewrite_of_keras*", None, _SCALES),
    Exemption("training_test", "LossScaleTest.test_dynamic_contrib*", None, _CONTRIB),
    Exemption("training_test", "LossScaleTest.test_dynamic_keras*", None, _SCALES),
    Exemption("training_test", "LossScaleTest.test_fixed*", None, _SCALES),
    Exemption("training_test", "LossScaleTest.test_narrow_outputs_contrib*", None, _CONTRIB),
    Exemption("training_test", "LossScaleTest.test_narrow_outputs_keras*", None, _SCALES),
    Exemption("training_test", "SessionsTest.test_gradient_noise", None, _CONTRIB),
    Exemption("graph_rewrite_test", "GraphRewriteTest.test_*_lookup*", None,
              "the GPU is described to the rewrite of TensorFlow 1.15"),
] + [
    Exemption("training_test", "SessionsTest.test_a_gradient_does_not_become_dense_" + case,
              None, _IDENTITY) for case in ("identity*", "stop_gradient")
] + [
    Exemption("training_test", "EstimatorTest.*", "estimators", _ESTIMATORS),
    Exemption("serving_test", "EstimatorTest.*", "estimators", _ESTIMATORS),
    Exemption("warm_start_test", "*.test_warm_start_of_a_canned_estimator", "estimators",
              _ESTIMATORS),
    Exemption("second_order_test", "SecondOrderTest.test_rows", "second order",
              "the stock gradient of a pooled lookup has no gradient in this TensorFlow"),
] + [
    Exemption(program, "LayersTest.test_ids_may_be_given_by_name", None,
              "Keras of 2.x takes the first argument of a layer by position")
    for program in ("layers_test", "cached_layers_test")
] + [
    Exemption("user_optimizers_test", "UserOptimizersTest.test_" + case, None, _CONTRIB)
    for case in ("same_as_dense_contrib*", "generic_if_the_update_is_not_stock_contrib*",
                 "decoupled_weight_decay*", "shampoo_is_refused")
] + [
    Exemption("layers_test", "LayersTest.test_layer_" + case, None,
              "slopes of a masked softmax, measured in float32, are off by 0.002 on 2.x")
    for case in ("Softmax__2_2_3_1_2_3",
                 "MultiHeadAttention__2_6_3_6_3_6_1_2_3___num_attention_heads_3")
] + [
    Exemption("creation_test", "CreationTest.test_eager_mode", None,
              "eager tables work on 2.x"),
    Exemption("creation_test", "StrategiesTest.test_mirrored_variables_are_refused_contrib", None,
              _CONTRIB),
] + [
    Exemption("creation_test", "StrategiesTest.test_one_replica_trains_parameter_server*", None,
              "ParameterServerStrategy.run returns None in a graph of 2.x")
]


def _no_estimators():
  from tensorflow.compat import v1  # pylint: disable=g-import-not-at-top
  try:
    return not hasattr(v1.estimator, "Estimator")
  except (AttributeError, ImportError):
    return True


def _no_second_order():
  from tensorflow.python.framework import ops  # pylint: disable=g-import-not-at-top
  return "SparseSegmentSumGrad" not in ops.gradient_registry.list()


_LACKS = {"estimators": _no_estimators, "second order": _no_second_order}


def why(program, case):
  """Returns the reason for which a case is skipped on TensorFlow 2.x, or None.

  Args:
    program: string, such as "training_test".
    case: string, "Class.test_name".
  """
  for e in LIST:
    if e.program == program and fnmatch.fnmatchcase(case, e.case):
      if e.lacks is None or _LACKS[e.lacks]():
        return e.why
  return None


def skip():
  """Makes unittest skip the cases of LIST in this process."""
  run = unittest.TestCase.run

  def run_or_skip(case, result=None):
    path = getattr(sys.modules.get(type(case).__module__), "__file__", "")
    program = os.path.splitext(os.path.basename(path))[0]
    # absl adds the parameters behind a space.
    name = ".".join(case.id().split(" ")[0].split(".")[-2:])
    reason = why(program, name)
    if reason is not None:
      setattr(case, case._testMethodName, lambda: case.skipTest(reason))  # pylint: disable=protected-access
    return run(case, result)

  unittest.TestCase.run = run_or_skip
