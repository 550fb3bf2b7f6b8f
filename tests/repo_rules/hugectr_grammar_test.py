# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pages of HugeCTR's JSON show the schema as it is."""

import json

from absl.testing import absltest

import hugectr_grammar
import tree


class HugectrGrammarTest(absltest.TestCase):

  def test_the_pages_show_the_schema(self):
    found = hugectr_grammar.pages(json.loads(tree.read(hugectr_grammar.SCHEMA)))
    for path, lines in found.items():
      page = tree.read(path)
      self.assertMultiLineEqual(
          page, hugectr_grammar.with_grammar(page, lines),
          "the schema has changed; run: " + hugectr_grammar.COMMAND)

  def test_describes_values(self):
    for schema, expected in (
        ({"type": "integer", "minimum": 1}, "integer ≥ 1"),
        ({"type": ["string", "array"], "items": {"type": "string"}},
         "string or list of string"),
        ({"enum": [0, "sum"]}, '`0`, `"sum"`'),
        ({"$ref": "#/definitions/solver"}, "[solver](hugectr_json.md#solver)")):
      self.assertEqual(hugectr_grammar.kind(schema), expected)

  def test_a_page_without_markers(self):
    with self.assertRaisesRegex(ValueError, "must have these lines once"):
      hugectr_grammar.with_grammar("x", [])


if __name__ == "__main__":
  absltest.main()
