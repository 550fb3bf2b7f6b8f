# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of wheel_contents and distributions: the descriptions and names of the wheels."""

from absl.testing import absltest
from absl.testing import parameterized

import distributions
import wheel_contents


class PlainLinksTest(parameterized.TestCase):

  @parameterized.parameters(
      ("see [a guide](docs/a.md#heading), or", "", "see a guide (docs/a.md), or"),
      ("| [`HBM`](docs/gpu.md) |", "", "| `HBM` (docs/gpu.md) |"),
      ("[two\nlines](../../docs/a.md)", "addons/x", "two\nlines (docs/a.md)"),
      ("[docs/a.md](../docs/a.md)", "addons", "docs/a.md"),
      ("[`a[0]`, `b`](x.md) and [c](#c)", "d", "`a[0]`, `b` (d/x.md) and c"))
  def test_a_link_into_the_tree_becomes_text_and_path(self, text, folder, expected):
    self.assertStartsWith(wheel_contents.plain_links(text, folder), expected + "\n\nPaths")

  @parameterized.parameters(
      "[Horovod](https://github.com/horovod/horovod)", "`rows[0](ids)`x", "table[i] (x)",
      "```python\nrows = tables[0](ids)\n```")
  def test_other_text_stays(self, text):
    self.assertEqual(wheel_contents.plain_links(text + "\n", "docs"), text + "\n")


class CompatibleTest(absltest.TestCase):

  def test_one_minor_version(self):
    self.assertEqual(distributions.compatible("0.1.0"), "<0.2,>=0.1")
    self.assertEqual(distributions.compatible("2.9.11"), "<2.10,>=2.9")


class DistributionsTest(absltest.TestCase):

  def test_the_version_names_another_tensorflow_than_1_15(self):
    self.assertEqual(distributions.wheel_version("0.1.3", "1.15"), "0.1.3")
    self.assertEqual(distributions.wheel_version("0.1.3", "2.21"), "0.1.3+tf2.21")

  def test_requires_that_tensorflow(self):
    self.assertEqual(distributions.requirements("2.15"), ["tensorflow<2.16,>=2.15"])
    # It was compiled with NumPy 1, and does not bound it.
    self.assertEqual(distributions.requirements("2.11"), ["numpy<2", "tensorflow<2.12,>=2.11"])
    self.assertEqual(distributions.requirements("1.15"),
                     ["protobuf<3.21", "tensorflow<1.16,>=1.15"])

  def test_pythons(self):
    python = "Programming Language :: Python :: "
    self.assertEqual(distributions.python_fields("1.15"), [
        ("Classifier", python + "3.7"), ("Requires-Python", ">=3.7,<3.8")])
    self.assertEqual(distributions.python_fields("2.15"), [
        ("Classifier", python + "3.9"), ("Classifier", python + "3.10"),
        ("Classifier", python + "3.11"), ("Requires-Python", ">=3.9,<3.12")])
    self.assertEqual(distributions.python_fields()[-1], ("Requires-Python", ">=3.7,<3.14"))
    self.assertLen(distributions.python_fields(), 8)


if __name__ == "__main__":
  absltest.main()
