# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""docs/hugectr_json.md shows the schema as it is."""

import json

from absl.testing import absltest

import hugectr_grammar
import tree


class HugectrGrammarTest(absltest.TestCase):

  def test_the_page_shows_the_schema(self):
    page = tree.read(hugectr_grammar.PAGE)
    lines = hugectr_grammar.grammar(json.loads(tree.read(hugectr_grammar.SCHEMA)))
    self.assertMultiLineEqual(
        page, hugectr_grammar.with_grammar(page, lines),
        "the schema has changed; run: " + hugectr_grammar.COMMAND)

  def test_describes_values(self):
    for schema, expected in (
        ({"type": "integer", "minimum": 1}, "integer ≥ 1"),
        ({"type": ["string", "array"], "items": {"type": "string"}},
         "string or list of string"),
        ({"enum": [0, "sum"]}, '`0`, `"sum"`'),
        ({"$ref": "#/definitions/solver"}, "[solver](#solver)")):
      self.assertEqual(hugectr_grammar.kind(schema), expected)

  def test_a_page_without_markers(self):
    with self.assertRaisesRegex(ValueError, "must have these lines once"):
      hugectr_grammar.with_grammar("x", [])


if __name__ == "__main__":
  absltest.main()
