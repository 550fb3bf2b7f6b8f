# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the five configurations with the same models written directly in TensorFlow."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import sample_models


class ModelsTest(parameterized.TestCase):

  @parameterized.parameters(*[(m,) for m in sample_models.MODELS])
  def test_trains_as_the_same_model_does(self, model):
    folder = self.create_tempdir().full_path
    start = folder + "/start"
    sample_models.write(model, folder)
    found = sample_models.train(model, folder, start)
    direct = sample_models.train_directly(model, folder, start)
    np.testing.assert_allclose(found.losses, direct.losses, rtol=2e-3)
    self.assertAlmostEqual(found.auc, direct.auc, delta=.002)
    self.assertLess(np.mean(found.losses[-4:]), np.mean(found.losses[:4]))


if __name__ == "__main__":
  absltest.main()
