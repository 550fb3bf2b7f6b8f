# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each function of TensorFlow that the package replaces works on stock objects as before."""

import importlib
import inspect
import json
import os
import subprocess
import sys
import types

from absl.testing import absltest
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.integration import patching

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stock_calls.py")

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _faults(stock, replacement):
  """Yields what a replacement does not accept as its stock function does."""
  # A copy, because functools.wraps has given the replacement the signature of stock.
  copy = types.FunctionType(replacement.__code__, {}, argdefs=replacement.__defaults__,
                            closure=replacement.__closure__)
  own = inspect.signature(copy).parameters
  kinds = [p.kind for p in own.values()]
  for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
    if kind not in kinds:
      yield "no %s parameter" % kind
  named = [p for p in own.values() if p.kind in _POSITIONAL]
  expected = [p for p in inspect.signature(stock).parameters.values()
              if p.kind in _POSITIONAL]
  for parameter, replaced in zip(expected, named):
    if replaced.name != parameter.name:
      yield "%s in place of %s" % (replaced.name, parameter.name)
    elif parameter.default is not replaced.default and (
        parameter.default != replaced.default):
      yield "%s=%r in place of %r" % (parameter.name, replaced.default, parameter.default)


class SignaturesTest(absltest.TestCase):

  def test_replacements_accept_all_arguments(self):
    if tf.__version__.startswith("1."):
      importlib.import_module("tensorflow.contrib.mixed_precision")
      importlib.import_module("tensorflow.contrib.layers")
    self.assertNotEmpty(patching.replaced)
    for owner, name, stock, replacement in patching.replaced:
      self.assertEqual(list(_faults(stock, replacement)), [],
                       "%s.%s" % (owner.__name__, name))

  def test_faults_are_found(self):

    def stock(a, b=None, *args, **kwargs):
      del a, b, args, kwargs

    def other(a, b=0):
      del a, b

    self.assertEqual(list(_faults(stock, stock)), [])
    self.assertLen(list(_faults(stock, other)), 3)


class StockCallsTest(absltest.TestCase):

  def _run(self, mode):
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("EV_TEST_V1", "TF_USE_LEGACY_KERAS")}
    done = subprocess.run([sys.executable, _PROGRAM, mode], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    self.assertEqual(done.returncode, 0, done.stderr.decode()[-4000:])
    result = json.loads(done.stdout.decode().splitlines()[-1])
    self.assertEqual(result["failed"], [])
    return result

  def test_results_are_those_of_stock(self):
    stock, patched = self._run("stock"), self._run("patched")
    self.assertEqual(sorted(stock["results"]), sorted(patched["results"]))
    for name, result in stock["results"].items():
      self.assertEqual(patched["results"][name], result, name)
    # A new patch needs a case in stock_calls.py.
    self.assertEmpty(patched["not_called"])


if __name__ == "__main__":
  absltest.main()
