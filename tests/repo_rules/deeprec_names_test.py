# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""docs/deeprec_names.md has the list of DeepRec's names as it is."""

import json

from absl.testing import absltest

import deeprec_names
import tree


class DeeprecNamesTest(absltest.TestCase):

  def test_the_page_has_the_list(self):
    page = tree.read(deeprec_names.PAGE)
    groups = json.loads(tree.read(deeprec_names.NAMES))
    self.assertGreater(sum(len(g["names"]) for g in groups), 50)
    self.assertMultiLineEqual(
        page, deeprec_names.with_table(page, groups),
        "the list has changed; run: " + deeprec_names.COMMAND)

  def test_no_name_is_listed_twice(self):
    names = [n["name"] for g in json.loads(tree.read(deeprec_names.NAMES))
             for n in g["names"]]
    self.assertCountEqual(names, set(names))


if __name__ == "__main__":
  absltest.main()
