# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the script with only its paths and sizes changed."""

import json
import os
import re
import subprocess
import sys

from absl.testing import absltest

from hugectr import testing
from hugectr.training import metrics

_HERE = "addons/hugectr/example/"
_SIZE = 50


class TrainTest(absltest.TestCase):

  def test_trains_on_parquet_data_with_26_and_13_columns(self):
    folder = self.create_tempdir().full_path
    planted = testing.Planted([_SIZE] * 26, 13)
    with open(_HERE + "criteo_parquet.json") as f:
      configuration = json.load(f)
    data = configuration["layers"][0]
    for key, name, files, seed in (("source", "train", 3, 1), ("eval_source", "val", 1, 2)):
      data[key] = testing.write_parquet(
          os.path.join(folder, name), planted, files, rows=12000, seed=seed)
    data["slot_size_array"] = [_SIZE] * 26
    with open(_HERE + "train.py") as f:
      script = f.read()
    for pattern, number in (("\nSTEPS = 5000", 121), ("EVALUATE_EVERY = 3000", 60),
                            ("SHOW_LOSS_EVERY = 100", 30), ("batchsize=16384", 512),
                            ("batchsize_eval=16384", 4096)):
      self.assertEqual(script.count(pattern), 1)
      script = script.replace(pattern, re.sub(r"\d+", str(number), pattern))
    path = os.path.join(folder, "train.py")
    with open(path, "w") as f:
      f.write(script)
    config = testing.write_json(os.path.join(folder, "model.json"), configuration)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", path, config], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                 TF_CPP_MIN_LOG_LEVEL="2"))
    self.assertEqual(done.returncode, 0, done.stderr)
    losses = [float(x) for x in re.findall(r"iter: \d+; loss: ([\d.]+)", done.stdout)]
    aucs = [float(x) for x in re.findall(r"\('AUC', ([\d.]+)\)", done.stdout)]
    self.assertLen(losses, 5)
    self.assertLess(losses[-1], losses[0] - .1)
    self.assertLen(aucs, 2)
    labels, dense, keys = planted.samples(20000, 3)
    best = metrics.auc(labels, planted.probabilities(dense, keys))
    self.assertBetween(aucs[-1], best - .06, best + .01)
    self.assertEqual(done.stderr.count("TensorFlow has no GPU in this process"), 1)


if __name__ == "__main__":
  absltest.main()
