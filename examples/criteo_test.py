# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import os
import re
import tempfile

from absl.testing import absltest
import numpy as np

import auc
import criteo

_SMALL = (30,) * criteo.NUM_CATEGORICAL


class CriteoTest(absltest.TestCase):

  def _write(self, rows, **kwargs):
    path = os.path.join(tempfile.mkdtemp(), "train.txt")
    model = criteo.PlantedModel(seed=kwargs.get("model_seed", 0))
    result = criteo.write(path, rows, model, kwargs.get("seed", 1))
    with open(path) as f:
      return result, f.read()

  def test_every_line_has_the_format(self):
    (_, labels), text = self._write(500)
    lines = text.split("\n")
    self.assertEqual(lines.pop(), "")
    self.assertLen(lines, 500)
    for line, label in zip(lines, labels):
      fields = line.split("\t")
      self.assertLen(fields, 40)
      self.assertEqual(int(fields[0]), label)
      for field in fields[1:14]:
        self.assertRegex(field, r"^(-?\d+)?$")
      for field in fields[14:]:
        self.assertRegex(field, r"^([0-9a-f]{8})?$")
    columns = list(zip(*(line.split("\t") for line in lines)))
    self.assertTrue(any("" in c for c in columns[1:14]))
    self.assertTrue(any("" in c for c in columns[14:]))
    self.assertLess(min(int(x) for x in columns[2] if x), 0)

  def test_text_equals_the_sampled_examples(self):
    (probability, labels), text = self._write(100)
    model = criteo.PlantedModel(seed=0)
    examples = model.sample(np.random.RandomState(1), 100)
    np.testing.assert_array_equal(examples.label, labels)
    np.testing.assert_array_equal(examples.probability, probability)
    for row, line in enumerate(text.splitlines()):
      fields = line.split("\t")
      for i, field in enumerate(fields[1:14]):
        value = int(field) if field else criteo.MISSING_NUMERIC
        self.assertEqual(value, examples.numeric[row, i])
      for i, field in enumerate(fields[14:]):
        self.assertEqual(
            field.encode(), criteo.token(i, int(examples.categorical[row, i])))

  def test_chunks_do_not_change_the_number_of_lines(self):
    chunk = criteo._CHUNK_ROWS  # pylint: disable=protected-access
    criteo._CHUNK_ROWS = 7  # pylint: disable=protected-access
    try:
      (probability, labels), text = self._write(20)
    finally:
      criteo._CHUNK_ROWS = chunk  # pylint: disable=protected-access
    self.assertEqual((len(probability), len(labels)), (20, 20))
    self.assertLen(text.splitlines(), 20)

  def test_same_seed_same_bytes(self):
    self.assertEqual(self._write(50)[1], self._write(50)[1])
    self.assertNotEqual(self._write(50)[1], self._write(50, seed=2)[1])
    self.assertNotEqual(self._write(50)[1], self._write(50, model_seed=5)[1])

  def test_tokens_are_distinct(self):
    tokens = {criteo.token(3, i) for i in range(100000)}
    self.assertLen(tokens, 100000)
    self.assertTrue(all(re.match(rb"^[0-9a-f]{8}$", t) for t in tokens))
    self.assertEqual(criteo.token(3, criteo.MISSING), b"")

  def test_labels_follow_the_probabilities(self):
    examples = criteo.PlantedModel(0).sample(np.random.RandomState(0), 50000)
    # Calibration: among examples of about equal probability, that share are clicks.
    for low, high in ((0.1, 0.2), (0.4, 0.6), (0.8, 0.9)):
      inside = (examples.probability >= low) & (examples.probability < high)
      self.assertAlmostEqual(examples.label[inside].mean(),
                             examples.probability[inside].mean(), delta=0.03)

  def test_no_other_score_ranks_better(self):
    model = criteo.PlantedModel(0, _SMALL)
    examples = model.sample(np.random.RandomState(0), 50000)
    best = auc.auc(examples.label, examples.probability)
    self.assertBetween(best, 0.75, 0.9)
    # These are probabilities of a slightly different model.
    noise = np.random.RandomState(1).normal(0, 0.5, 50000)
    logit = np.log(examples.probability / (1 - examples.probability))
    self.assertLess(auc.auc(examples.label, logit + noise), best)

  def test_ids_are_skewed(self):
    examples = criteo.PlantedModel(0).sample(np.random.RandomState(0), 20000)
    counts = np.sort(np.bincount(examples.categorical[:, 2] + 1)[1:])[::-1]
    # By Zipf's law the hottest value is about ten times as frequent as the tenth.
    self.assertBetween(counts[0] / counts[9], 8, 20)

  def test_wrong_number_of_cardinalities(self):
    with self.assertRaisesRegex(ValueError, "expected 26 cardinalities, got 2"):
      criteo.PlantedModel(0, (3, 4))


if __name__ == "__main__":
  absltest.main()
